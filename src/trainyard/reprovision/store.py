"""The state directory with the files of past runs. Files are written atomically, and only their owner may read them."""

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
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"Another run of reprovisioning uses {self.folder}.",
                    remedy="Wait until it ends; `trainyard reprovision status` shows it.",
                ) from None
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

    def history(self) -> ages.History:
        """Return the ages of items by their keys."""
        found = self.read_json("history.json")
        if isinstance(found, dict) and found.get("schema") == schema1.OLD:
            # The oldest first, so that the task names of newer reports win.
            found = schema1.history(found, map(self._document, reversed(self.names())))
        return ages.from_json(found)

    def keep_history(self, history: ages.History) -> None:
        self.write_json("history.json", ages.as_json(history))

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
                told = "The run was interrupted: its process ended early."
                self.write_json(f"runs/{name}/report.json", {
                    **report, "state": INTERRUPTED, "ended": now, "exit_status": EXIT_UNKNOWN, "headline": told,
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
