"""Layouts of code on the controller: a folder for each digest, the newest few of them."""

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
"""Seconds for which a layout stays whatever comes after it: another run may be pushing it."""
LOCK_TIMEOUT = 120
"""Seconds to wait for another run, which writes 64 MiB at most."""


def path_of(shelf: Path, layout: Layout) -> Path:
    """Where a layout lies. Without the algorithm's name: skopeo takes what follows a colon for a tag."""
    return shelf / layout.digest.partition(":")[2]


def make_plan(shelf: Path, layout: Layout, files: int, keep: int) -> Plan:
    """Plan to have a layout on the shelf, as the newest of all.

    :param files: how many it holds, for the diff.
    :param keep: how many layouts stay, besides those of the last day.
    """
    newest = next(iter(_by_age(shelf)), None)
    place = path_of(shelf, layout)
    there = layout.is_at(place)
    what = f"Take {layout.digest} again" if there else f"Pack {files} files as {layout.digest}"
    steps = [] if there and newest == place else [Step(what, partial(_put, shelf, layout, keep))]
    before: dict[str, Any] = {"digest": f"sha256:{newest.name}", "files": files_in(newest)} if newest else {}
    return Plan(steps, before, {"digest": layout.digest, "files": files})


def _put(shelf: Path, layout: Layout, keep: int) -> None:
    """A reader, or the next run after a power cut, finds a whole layout or none: what is damaged is not `is_at`."""
    place = path_of(shelf, layout)
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        with locked(shelf / ".lock", what=f"another run to finish with {shelf}", timeout=LOCK_TIMEOUT):
            if layout.is_at(place):
                os.utime(place)
            else:
                # What a run left that was killed here; a living one would have the lock.
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
            remedy="Make room there, or name another folder that this user may write.",
        ) from error


def _by_age(shelf: Path) -> list[Path]:
    """Folders of layouts, the one that was taken last first."""
    found = [path for path in shelf.glob("[0-9a-f]" * 64) if path.is_dir()]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
