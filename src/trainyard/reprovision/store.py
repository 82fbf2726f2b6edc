"""The folder in which everything about past runs lies: each file whole or not at all, readable by its owner alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.files import sync
from . import history as ages
from . import schema1
from .report import EXIT_UNKNOWN, INTERRUPTED, RUNNING, SCHEMA

RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
"""Name of a run's folder: when it began, UTC, and four digits that keep two apart."""

TEMPORARY = ".new-"
LEFT = (TEMPORARY, ".trainyard-")
"""What names of files begin with that are written and have not got their own name yet, here and in core/files.py."""


class BusyError(TrainyardError):
    """Another run works in the same folder."""


class Store:
    """The state directory of one site.

    :param folder: made with mode 0700 when something is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder while the block runs; the kernel gives it back when the process ends.

        :raises BusyError: another run holds it; nothing is waited for.
        """
        self._make(self.folder)
        with (self.folder / "lock").open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"Another run of reprovisioning works in {self.folder}.",
                    remedy="Wait for its end; `trainyard reprovision status` shows it.",
                ) from None
            yield

    def new_name(self, now: float) -> str:
        """A name for a run, which no other run has.

        :param now: seconds since the epoch.
        """
        while True:
            name = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
            if not (self.runs / name).exists():
                return name

    def begin(self, now: float, report: dict[str, Any], name: str = "") -> str:
        """Make the folder of a new run with its report so far, and return the run's name.

        :param now: seconds since the epoch.
        :param name: of `new_name`, where the run had to have one before.
        """
        name = name or self.new_name(now)
        self.write_json(f"runs/{name}/report.json", {**report, "id": name})
        return name

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file below the folder so that a reader finds the old one or the new one.

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
        """The same for a document."""
        return self.write(name, json.dumps(document, indent=1) + "\n")

    def read_json(self, name: str) -> Any:
        """A document below the folder; None where there is none that can be read."""
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def names(self) -> list[str]:
        """Names of all runs, the youngest first."""
        try:
            return sorted((each.name for each in self.runs.iterdir() if RUN.fullmatch(each.name)), reverse=True)
        except OSError:
            return []

    def report(self, name: str) -> dict[str, Any] | None:
        """The report of a run; None where it has none of this schema."""
        found = self._document(name)
        if found.get("schema") == schema1.OLD:
            return schema1.report(found)
        return found if found.get("schema") == SCHEMA else None

    def _document(self, name: str) -> dict[str, Any]:
        """The report of a run as it was written; empty where there is none that can be read."""
        found = self.read_json(f"runs/{name}/report.json") if RUN.fullmatch(name) else None
        return found if isinstance(found, dict) else {}

    def reports(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The reports of past runs, the youngest first."""
        found: list[dict[str, Any]] = []
        for name in self.names():
            if limit is not None and len(found) >= limit:
                break
            report = self.report(name)
            if report is not None:
                found.append(report)
        return found

    def history(self) -> ages.History:
        """Ages of items, by their keys."""
        found = self.read_json("history.json")
        if isinstance(found, dict) and found.get("schema") == schema1.OLD:
            # The oldest first: a younger report knows an item by the words of its own time.
            found = schema1.history(found, map(self._document, reversed(self.names())))
        return ages.from_json(found)

    def keep_history(self, history: ages.History) -> None:
        self.write_json("history.json", ages.as_json(history))

    def close_interrupted(self, now: float) -> list[str]:
        """Close what a killed run, or a power cut, has left; called with the folder locked.

        :param now: seconds since the epoch.
        :returns: the names of the runs that were closed.
        """
        for left in [each for prefix in LEFT for each in self.folder.rglob(f"{prefix}*")]:
            left.unlink(missing_ok=True)
        closed = []
        for name in self.names():
            report = self.report(name)
            if report is None and not (self.runs / name / "report.json").exists():
                shutil.rmtree(self.runs / name, ignore_errors=True)
            elif report is not None and report.get("state") == RUNNING:
                told = "The run was interrupted: its process ended before it did."
                self.write_json(f"runs/{name}/report.json", {
                    **report, "state": INTERRUPTED, "ended": now, "exit_status": EXIT_UNKNOWN, "headline": told,
                })  # fmt: skip
                closed.append(name)
        return closed

    def remove(self, name: str, files: tuple[str, ...] = ()) -> None:
        """Remove some files of a run, or all of it."""
        if not RUN.fullmatch(name):
            raise ValueError(f"{name} is no run")
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
            raise TrainyardError(f"{folder} cannot be made: {error.strerror}.") from error
