"""Programs of the bundle: they are killed together with their module, because the next run uses the same folders."""

from __future__ import annotations

from functools import partial

from ..core import command

run = partial(command.run, outlives=False)
