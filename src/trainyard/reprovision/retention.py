"""What of past runs is removed: by age, by count, by size, the oldest first, never the last good one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .report import RUNNING
from .store import Store

LONG = ("events.jsonl.gz", "output.txt.gz")
"""Files of a run that are kept for a few runs only."""

DAY = 86400.0
MB = 1_000_000


@dataclass(frozen=True)
class Kept:
    """One run on the disk, sizes in bytes.

    :param began: seconds since the epoch.
    :param good: it ended with the status 0.
    :param long: size of what is kept for a few runs only; `short` is that of the rest.
    """

    name: str
    began: float
    good: bool
    long: int
    short: int


@dataclass(frozen=True)
class Removal:
    """A run, and whether all of it goes or only its long files."""

    name: str
    whole: bool


def doomed(runs: Sequence[Kept], now: float, *, days: float, count: int, megabytes: float) -> list[Removal]:
    """What has to go, the oldest first.

    :param runs: in any order; the youngest is the run that is at its end, and stays as it is.
    :param now: seconds since the epoch.
    :param days: age at which a report goes.
    :param count: runs that keep their events and output.
    :param megabytes: size of all together; first the long files go for it, then whole runs.
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
    """Remove what has to go; called with the folder locked.

    :returns: what was removed.
    """
    removed = doomed([_kept(store, name) for name in store.names()], now, days=days, count=count, megabytes=megabytes)
    for each in removed:
        store.remove(each.name, () if each.whole else LONG)
    return removed


def _kept(store: Store, name: str) -> Kept:
    report = store.report(name) or {}
    # Of a report that cannot be read, or has another schema, the name says when the run began.
    began = report.get("began") or datetime.strptime(f"{name[:15]}+0000", "%Y%m%dT%H%M%S%z").timestamp()
    sizes = {path.name: path.stat().st_size for path in (store.runs / name).iterdir() if path.is_file()}
    return Kept(
        name,
        began=float(began),
        good=report.get("exit_status") == 0 and report.get("state") != RUNNING and not report.get("only"),
        long=sum(size for file, size in sizes.items() if file in LONG),
        short=sum(size for file, size in sizes.items() if file not in LONG),
    )
