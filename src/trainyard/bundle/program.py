"""Programs of the bundle: each ends with its module, because the next run works in the same folders."""

from __future__ import annotations

from functools import partial

from ..core import command

run = partial(command.run, outlives=False)
