"""The state directory of a site: the files of past runs, and the ages of items.

The store writes files atomically, and only their owner may read them.

Parts: the ages of items; the store; the removal of past runs. An age shows when an item was first seen, and in how many
runs. The removal follows age, count and size: the oldest run first, and never the last good one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.files import sync
from ..core.flock import take
from . import schema1
from .items import Item
from .report import EXIT_UNKNOWN, INTERRUPTED, RUNNING, SCHEMA

HISTORY_SCHEMA = 2


@dataclass(frozen=True)
class Entry:
    """The age of one item.

    :param host: host of the item; if a run does not check the host, the item keeps its age.
    :param first_seen: seconds since the epoch; `last_seen` has the same unit.
    :param runs: number of consecutive reports with the item.
    """

    host: str
    first_seen: float
    last_seen: float
    runs: int = 1


History = dict[str, Entry]


def aged(
    items: Iterable[Item], history: Mapping[str, Entry], now: float, unseen: Collection[str] = ()
) -> tuple[list[Item], History]:
    """Return the items with their ages, and the new history.

    :param now: seconds since the epoch.
    :param unseen: hosts that this run did not check; their items keep their ages.
    """
    kept: History = {}
    aged_items = []
    for item in items:
        old = history.get(item.key)
        entry = Entry(
            host=item.host,
            first_seen=old.first_seen if old else now,
            last_seen=now,
            runs=old.runs + 1 if old else 1,
        )
        kept[item.key] = entry
        aged_items.append(replace(item, first_seen=entry.first_seen, last_seen=now, runs=entry.runs))
    return aged_items, kept | {key: old for key, old in history.items() if key not in kept and old.host in unseen}


def known(items: Iterable[Item], history: Mapping[str, Entry], now: float) -> list[Item]:
    """Return the items of another check run within the same run with their ages. The count of runs stays."""
    aged_items = []
    for item in items:
        old = history.get(item.key) or Entry(item.host, now, now)
        aged_items.append(replace(item, first_seen=old.first_seen, last_seen=now, runs=old.runs))
    return aged_items


def as_json(history: Mapping[str, Entry]) -> dict[str, Any]:
    """Return the document for the disk."""
    return {"schema": HISTORY_SCHEMA, "items": {key: asdict(entry) for key, entry in sorted(history.items())}}


def from_json(document: Any) -> History:
    """Return the history from a document of `as_json`; empty for any other document, so that ages start again."""
    try:
        if document["schema"] != HISTORY_SCHEMA:
            return {}
        return {
            str(key): Entry(str(each["host"]), float(each["first_seen"]), float(each["last_seen"]), int(each["runs"]))
            for key, each in document["items"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
"""Name of a run's folder: its start in UTC, and four random hexadecimal digits to make it unique."""

TEMPORARY = ".new-"
LEFT = (TEMPORARY, ".trainyard-")
"""Prefixes of temporary files that are not renamed yet, of this module and of core/files.py."""


class BusyError(TrainyardError):
    """Another run uses the same folder."""


class Store:
    """The state directory of one site.

    :param folder: created with mode 0700 on the first write.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder while the block runs. The kernel releases it when the process ends.

        :raises BusyError: another run holds it. There is no wait.
        """
        self._make(self.folder)
        with (self.folder / "lock").open("a") as stream:
            if not take(stream):
                raise BusyError(
                    f"Another run of reprovisioning uses {self.folder}.",
                    remedy="Wait until it ends; `trainyard reprovision status` shows it.",
                )
            yield

    def new_name(self, now: float) -> str:
        """Return a new unique name for a run.

        :param now: seconds since the epoch.
        """
        while True:
            name = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
            if not (self.runs / name).exists():
                return name

    def begin(self, now: float, report: dict[str, Any], name: str = "") -> str:
        """Create the folder of a new run with its first report, and return the run's name.

        :param now: seconds since the epoch.
        :param report: of the beginning run.
        :param name: of `new_name`, if the run has one already.
        """
        name = name or self.new_name(now)
        self.write_json(f"runs/{name}/report.json", {**report, "id": name})
        return name

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file below the folder atomically.

        :param name: path below the folder.
        :raises TrainyardError: the file system refuses.
        """
        path = self.folder / name
        try:
            self._make(path.parent)
            descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data.encode() if isinstance(data, str) else data)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            sync(str(path.parent))
        except OSError as error:
            raise TrainyardError(f"{path} cannot be written: {error.strerror}.") from error
        return path

    def write_json(self, name: str, document: Any) -> Path:
        """Write a document as JSON, like `write`."""
        return self.write(name, json.dumps(document, indent=1) + "\n")

    def read_json(self, name: str) -> Any:
        """Return a document below the folder; None if it is missing or unreadable."""
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def names(self) -> list[str]:
        """Return the names of all runs, the newest first."""
        try:
            return sorted((each.name for each in self.runs.iterdir() if RUN.fullmatch(each.name)), reverse=True)
        except OSError:
            return []

    def report(self, name: str) -> dict[str, Any] | None:
        """Return the report of a run in the current schema; None if there is none in a known schema."""
        found = self._document(name)
        if found.get("schema") == schema1.OLD:
            return schema1.report(found)
        return found if found.get("schema") == SCHEMA else None

    def _document(self, name: str) -> dict[str, Any]:
        """Return the report of a run as written; empty if it is missing or unreadable."""
        found = self.read_json(f"runs/{name}/report.json") if RUN.fullmatch(name) else None
        return found if isinstance(found, dict) else {}

    def reports(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the reports of past runs, the newest first.

        :param limit: number of reports; None for all.
        """
        found: list[dict[str, Any]] = []
        for name in self.names():
            if limit is not None and len(found) >= limit:
                break
            report = self.report(name)
            if report is not None:
                found.append(report)
        return found

    def history(self) -> History:
        """Return the ages of items by their keys."""
        found = self.read_json("history.json")
        if isinstance(found, dict) and found.get("schema") == schema1.OLD:
            # The oldest first, so that the task names of newer reports win.
            found = schema1.history(found, map(self._document, reversed(self.names())))
        return from_json(found)

    def keep_history(self, history: History) -> None:
        self.write_json("history.json", as_json(history))

    def close_interrupted(self, now: float) -> list[str]:
        """Close the runs that a kill or a power cut has interrupted. The caller holds the lock of the folder.

        :param now: seconds since the epoch.
        :returns: the names of the closed runs.
        """
        for left in [each for prefix in LEFT for each in self.folder.rglob(f"{prefix}*")]:
            left.unlink(missing_ok=True)
        closed = []
        for name in self.names():
            report = self.report(name)
            if report is None and not (self.runs / name / "report.json").exists():
                shutil.rmtree(self.runs / name, ignore_errors=True)
            elif report is not None and report.get("state") == RUNNING:
                headline = "The run was interrupted: its process ended early."
                self.write_json(f"runs/{name}/report.json", {
                    **report, "state": INTERRUPTED, "ended": now, "exit_status": EXIT_UNKNOWN, "headline": headline,
                })  # fmt: skip
                closed.append(name)
        return closed

    def remove(self, name: str, files: tuple[str, ...] = ()) -> None:
        """Remove some files of a run, or the whole run if no files are given."""
        if not RUN.fullmatch(name):
            raise ValueError(f"{name} is not a run")
        for each in files:
            (self.runs / name / each).unlink(missing_ok=True)
        if not files:
            shutil.rmtree(self.runs / name, ignore_errors=True)

    def _make(self, folder: Path) -> None:
        try:
            for each in reversed([folder, *folder.parents]):
                if each == self.folder or self.folder in each.parents:
                    each.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise TrainyardError(f"{folder} cannot be created: {error.strerror}.") from error


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
    # An earlier release listed the runs there. The file would look current.
    (store.folder / "index.html").unlink(missing_ok=True)
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
