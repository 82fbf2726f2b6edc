"""Store of code layouts on the controller: one folder per digest, limited to the newest ones."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.lock import locked
from ..core.plan import Plan, Step
from .layout import Layout, files_in

DAY = 86400
"""Minimum seconds for which a layout is kept, because another run may be pushing it."""
LOCK_TIMEOUT = 120
"""Seconds to wait for another run, which writes at most 64 MiB."""


def path_of(shelf: Path, layout: Layout) -> Path:
    """Return the folder of a layout, without the algorithm's name: skopeo treats text after a colon as a tag."""
    return shelf / layout.digest.partition(":")[2]


def make_plan(shelf: Path, layout: Layout, files: int, keep: int) -> Plan:
    """Plan to store a layout as the newest one.

    :param files: number of its files, for the diff.
    :param keep: number of layouts to keep, in addition to those of the last day.
    """
    newest = next(iter(_by_age(shelf)), None)
    place = path_of(shelf, layout)
    there = layout.is_at(place)
    what = f"Use {layout.digest} again" if there else f"Pack {files} files as {layout.digest}"
    steps = [] if there and newest == place else [Step(what, partial(_put, shelf, layout, keep))]
    before: dict[str, Any] = {"digest": f"sha256:{newest.name}", "files": files_in(newest)} if newest else {}
    return Plan(steps, before, {"digest": layout.digest, "files": files})


def _put(shelf: Path, layout: Layout, keep: int) -> None:
    """Store a layout and remove old ones.

    A reader, or the next run after a power cut, finds a complete layout or none: `is_at` rejects damaged ones.
    """
    place = path_of(shelf, layout)
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        with locked(shelf / ".lock", what=f"another run to finish with {shelf}", timeout=LOCK_TIMEOUT):
            if layout.is_at(place):
                os.utime(place)
            else:
                # Remains of a killed run; a live run would hold the lock.
                new = shelf / ".new"
                shutil.rmtree(new, ignore_errors=True)
                layout.write(new)
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
            for path in _by_age(shelf)[keep:]:
                if path != place and path.stat().st_mtime < time.time() - DAY:
                    shutil.rmtree(path)
    except OSError as error:
        raise TrainyardError(
            f"The image of the code cannot be kept in {shelf}: {error.strerror}.",
            remedy="Free space there, or set another folder that this user may write.",
        ) from error


def _by_age(shelf: Path) -> list[Path]:
    """Return the folders of layouts, most recently used first."""
    found = [path for path in shelf.glob("[0-9a-f]" * 64) if path.is_dir()]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
