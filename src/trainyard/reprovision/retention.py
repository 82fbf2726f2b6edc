"""Remove past runs by age, count and size: the oldest first, and never the last good one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .report import RUNNING
from .store import Store

LONG = ("events.jsonl.gz", "output.txt.gz")
"""Long files of a run. Only a few runs keep them."""

DAY = 86400.0
MB = 1_000_000


@dataclass(frozen=True)
class Kept:
    """One run on the disk, with sizes in bytes.

    :param began: seconds since the epoch.
    :param good: whether a run of the whole site ended with the status 0.
    :param long: size of the long files; `short` is the size of the others.
    """

    name: str
    began: float
    good: bool
    long: int
    short: int


@dataclass(frozen=True)
class Removal:
    """A run to remove, as a whole or only its long files."""

    name: str
    whole: bool


def doomed(runs: Sequence[Kept], now: float, *, days: float, count: int, megabytes: float) -> list[Removal]:
    """Return the removals, the oldest run first.

    :param runs: in any order; the newest is the run that is ending, and stays.
    :param now: seconds since the epoch.
    :param days: age at which a run is removed.
    :param count: number of runs that keep their events and output.
    :param megabytes: limit of the total size; first long files are removed for it, then whole runs.
    """
    young = sorted(runs, key=lambda run: (run.began, run.name), reverse=True)
    safe = {run.name for run in young[:1]} | {run.name for run in [each for each in young if each.good][:1]}
    whole = {run.name for run in young if now - run.began > days * DAY and run.name not in safe}
    long = {run.name for run in young[max(count, 1) :] if run.long and run.name not in safe}
    size = sum((run.short + (0 if run.name in long else run.long)) for run in young if run.name not in whole)
    for part in ("long", "whole"):
        for run in reversed(young):
            if size <= megabytes * MB or run.name in safe or run.name in whole:
                continue
            if part == "long" and run.long and run.name not in long:
                long.add(run.name)
                size -= run.long
            elif part == "whole":
                whole.add(run.name)
                size -= run.short
    return [Removal(run.name, run.name in whole) for run in reversed(young) if run.name in whole | long]


def prune(store: Store, now: float, *, days: float, count: int, megabytes: float) -> list[Removal]:
    """Remove old runs. The caller holds the lock of the folder.

    :param days: age at which a run is removed.
    :param count: number of runs that keep their events and output.
    :param megabytes: limit of the total size.
    :returns: the removals.
    """
    removed = doomed([_kept(store, name) for name in store.names()], now, days=days, count=count, megabytes=megabytes)
    for each in removed:
        store.remove(each.name, () if each.whole else LONG)
    return removed


def _kept(store: Store, name: str) -> Kept:
    report = store.report(name) or {}
    # If the report is unreadable or has another schema, the name has the start of the run.
    began = report.get("began") or datetime.strptime(f"{name[:15]}+0000", "%Y%m%dT%H%M%S%z").timestamp()
    sizes = {path.name: path.stat().st_size for path in (store.runs / name).iterdir() if path.is_file()}
    return Kept(
        name,
        began=float(began),
        good=report.get("exit_status") == 0 and report.get("state") != RUNNING and not report.get("only"),
        long=sum(size for file, size in sizes.items() if file in LONG),
        short=sum(size for file, size in sizes.items() if file not in LONG),
    )
