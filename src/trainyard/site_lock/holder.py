"""The holder of a lock, as data for errors, files and annotations."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError

BUSY_REMEDY = "Wait until it ends, or end it there; its locks end with it."


class Busy(TrainyardError):
    """Another run holds the site.

    :param holder: that run.
    """

    def __init__(self, message: str, holder: Holder | None, *, remedy: str = BUSY_REMEDY) -> None:
        super().__init__(message, remedy=remedy, holder=asdict(holder) if holder else None)
        self.holder = holder


@dataclass(frozen=True)
class Holder:
    """A run of a verb that changes a site.

    :param since: seconds since the epoch.
    :param user: the user who started it; `host` is the machine on which it runs.
    :param pid: its process, whose end ends the lock; `started` excludes a later process with the same id.
    :param boot: id of the machine's boot, because process ids are only valid within one boot.
    :param place: the file of the machine's lock (device and inode); empty if it holds none.
    :param notes: notes about its locks: a takeover, or a missing lease.
    :param keeper: the process that keeps the locks for the run; 0 if the run does this itself.
    :param lost: why it has lost its lease; empty if it has not, or never had one.
    """

    verb: str
    run_id: str
    since: float
    user: str = ""
    host: str = ""
    revision: str = ""
    pid: int = 0
    started: int = 0
    boot: str = ""
    place: str = ""
    notes: tuple[str, ...] = ()
    lost: str = ""
    leased: bool = False
    keeper: int = 0

    def __str__(self) -> str:
        since = f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M:%S} UTC"
        at = f" at {self.revision[:12]}" if self.revision else ""
        return f"{self.verb}{at} by {self.user} on {self.host}, process {self.pid}, run {self.run_id}, since {since}"

    @property
    def alive(self) -> bool:
        """Return whether its process runs on this machine; False also if the run is on another machine."""
        return self.boot == boot_id() and self.pid > 0 and self.started == start_of(self.pid) != 0

    def as_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def here(verb: str, run_id: str, since: float, *, revision: str = "", pid: int = 0) -> Holder:
    """Return the holder for a process of this machine.

    :param since: seconds since the epoch.
    :param pid: the process of the run; 0 for the calling process.
    """
    number = pid or os.getpid()
    return Holder(
        verb=verb,
        run_id=run_id,
        since=since,
        user=_user(),
        host=socket.gethostname(),
        revision=revision,
        pid=number,
        started=start_of(number),
        boot=boot_id(),
    )


def parse(text: str) -> Holder | None:
    """Return the holder in the text of a file; None for an invalid text."""
    try:
        return of(json.loads(text))
    except ValueError:
        return None


def of(read: Mapping[str, Any]) -> Holder | None:
    """Return the holder from plain data; None for invalid data."""
    try:
        known = {each.name: read[each.name] for each in fields(Holder) if each.name in read}
        return Holder(**{**known, "notes": tuple(known.get("notes", ()))})
    except (TypeError, AttributeError):
        return None


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def start_of(pid: int) -> int:
    """Return when a process began, in ticks after the boot; 0 if it does not exist or has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The name of the program, in parentheses, may contain any character.
    rest = text.rpartition(")")[2].split()
    return 0 if rest[0] in "ZX" else int(rest[19])


def _user() -> str:
    sudo = os.environ.get("SUDO_USER", "")
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{sudo} ({name})" if sudo and sudo != name else name
