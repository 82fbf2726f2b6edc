"""Looks at a mount without ever waiting for its server, and carries out what there is to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.files import write
from ..core.plan import Plan, Step
from .mounts import UNITS, Entry, Mount, entries_of, mounted_at, read_ahead_path, some, unit_text, users
from .units import QUERY_TIMEOUT, STARTS_AT_BOOT, newer_paths

PROPERTIES = ("FragmentPath", "UnitFileState", "NeedDaemonReload", "ActiveEnterTimestampMonotonic")
GRACE = 30
"""Seconds that systemctl has beyond the unit's own limit, for killing the helper of the mount."""


@dataclass(frozen=True)
class Seen:
    """What there is.

    :param entry: what is mounted at the path.
    :param unit: text of our unit; None without one.
    :param properties: of the unit, as systemd names them.
    :param older: whether the unit's file has changed since it was mounted.
    :param inside: names in the folder, where nothing is mounted.
    :param users: who has the file system at another place.
    :param read_ahead_kb: None where nothing is mounted, or the kernel does not say.
    """

    entry: Entry | None = None
    unit: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    older: bool = False
    inside: Sequence[str] = ()
    folder: bool = True
    users: Sequence[str] = ()
    read_ahead_kb: int | None = None


def observe(mount: Mount, *, ask: bool = True) -> Seen:
    """Read what there is.

    :param ask: ask the server of what is mounted.
    :raises TrainyardError: that did not answer in time.
    """
    entry = mounted_at(mount.path, _read("/proc/self/mountinfo") or "")
    shown = run(["systemctl", "show", mount.unit, f"--property={','.join(PROPERTIES)}"], timeout=QUERY_TIMEOUT)
    properties = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    unit = _read(mount.unit_path)
    if entry is None:
        return Seen(None, unit, properties, inside=entries_of(mount.path), folder=os.path.isdir(mount.path))
    if ask:
        probe(mount)
    started = int(properties.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    ahead = _read(read_ahead_path(entry.device))
    return Seen(
        entry,
        unit,
        properties,
        older=bool(newer_paths([mount.unit_path], started)),
        users=users(entry),
        read_ahead_kb=int(ahead) if ahead else None,
    )


def probe(mount: Mount) -> None:
    """Ask the mounted file system for its size, which only its server knows.

    In a program of its own: a process that asks a server that is gone waits for ever.

    :raises TrainyardError: there was no answer in time.
    """
    try:
        run(["stat", "--file-system", mount.path], timeout=mount.probe_timeout)
    except CommandError as error:
        raise TrainyardError(
            f"{mount.path} does not answer within {mount.probe_timeout} s: {error.message}",
            remedy=f"Look whether the server of {mount.source} runs and this host can reach it; what waits for it "
            "goes on by itself when it is back.",
        ) from error


def make_plan(mount: Mount, seen: Seen) -> Plan:
    """The plan from what there is.

    :raises TrainyardError: the folder has other files or another mount, or pods use what would be mounted anew.
    """
    _refuse_other(mount, seen)
    text = unit_text(mount)
    steps = []
    if not seen.folder:
        steps.append(Step(f"Make the folder {mount.path}", partial(os.makedirs, mount.path, 0o755, exist_ok=True)))
    if seen.unit != text:
        steps.append(Step(f"Write {mount.unit_path}", partial(write, mount.unit_path, text, 0o644)))
    if seen.unit != text or seen.properties.get("NeedDaemonReload") == "yes":
        steps.append(_systemctl(mount, "Reload the units of systemd", "daemon-reload"))
    if seen.properties.get("UnitFileState") not in STARTS_AT_BOOT:
        steps.append(_systemctl(mount, f"Mount {mount.path} at every boot", "enable", mount.unit))
    if seen.entry is None:
        steps.append(Step(f"Mount {mount.source} at {mount.path}", partial(_mount, mount, "start")))
    elif seen.unit != text or seen.older:
        _refuse_use(mount, seen, "mounted anew")
        steps.append(Step(f"Mount {mount.path} anew", partial(_mount, mount, "restart")))
    elif mount.read_ahead_kb and seen.read_ahead_kb not in (None, mount.read_ahead_kb):
        steps.append(Step(f"Read {mount.read_ahead_kb} KiB ahead", partial(_read_ahead, mount)))
    before: dict[str, Any] = {"unit": seen.unit or "", "mounted": seen.entry is not None}
    after: dict[str, Any] = {"unit": text, "mounted": True}
    if mount.read_ahead_kb:
        before["read_ahead_kb"], after["read_ahead_kb"] = seen.read_ahead_kb, mount.read_ahead_kb
    return Plan(steps, before, after)


def _refuse_other(mount: Mount, seen: Seen) -> None:
    if seen.inside:
        raise TrainyardError(
            f"{mount.path} holds other files, which the mount would hide: {some(seen.inside)}.",
            remedy="Move them, or mount at another path.",
        )
    place = seen.properties.get("FragmentPath", "")
    if seen.entry and seen.unit is None:
        by = f" by {place}" if place and not place.startswith(UNITS) else ""
        raise TrainyardError(
            f"{seen.entry.source} ({seen.entry.fstype}) is mounted at {mount.path} already{by}.",
            remedy="Unmount it, and take it out of /etc/fstab; or leave the mount to its owner "
            "(storage_backend shared_path, efs_mount_mode none).",
        )


def make_removal(mount: Mount, seen: Seen) -> Plan:
    """The plan that unmounts what our unit has mounted, and removes the unit; the folder stays.

    :raises TrainyardError: pods use it.
    """
    if seen.unit is None:
        return Plan()
    steps = []
    if seen.entry is not None:
        _refuse_use(mount, seen, "unmounted")
        steps.append(Step(f"Unmount {mount.path}", partial(_mount, mount, "stop")))
    steps += [
        _systemctl(mount, f"Mount {mount.path} at no boot", "disable", mount.unit),
        Step(f"Remove {mount.unit_path}", partial(os.unlink, mount.unit_path)),
        _systemctl(mount, "Reload the units of systemd", "daemon-reload"),
    ]
    before = {"unit": seen.unit, "mounted": seen.entry is not None}
    return Plan(steps, before, {"unit": "", "mounted": False})


def _refuse_use(mount: Mount, seen: Seen, what: str) -> None:
    if seen.users:
        raise TrainyardError(
            f"{mount.path} has to be {what} and is in use by {some(seen.users)}.",
            remedy="Drain the node (kubectl drain NODE --ignore-daemonsets --delete-emptydir-data), run this again, "
            "and uncordon it; or set what it was mounted with.",
        )


def _systemctl(mount: Mount, what: str, *words: str) -> Step:
    return Step(what, lambda: run(["systemctl", *words], timeout=mount.timeout + GRACE))


def _mount(mount: Mount, verb: str) -> None:
    run(["systemctl", "reset-failed", mount.unit], timeout=QUERY_TIMEOUT, ok=(0, 1))
    try:
        run(["systemctl", verb, mount.unit], timeout=2 * mount.timeout + GRACE)
    except CommandError as error:
        shown = run(
            ["journalctl", "--no-pager", "--output=cat", "--lines=10", f"--unit={mount.unit}"],
            timeout=QUERY_TIMEOUT,
            ok=(0, 1),
        )
        raise TrainyardError(
            f"{mount.unit} does not {verb}, {mount.source} at {mount.path}: {error.message}\n"
            f"The last lines of the unit:\n{shown.stdout.strip()}",
            remedy="Look whether the server runs, its name is known here, it admits this host, and no program has "
            "files of it open.",
        ) from error
    if verb != "stop":
        _read_ahead(mount)


def _read_ahead(mount: Mount) -> None:
    entry = mounted_at(mount.path, _read("/proc/self/mountinfo") or "")
    if entry and mount.read_ahead_kb and os.path.exists(read_ahead_path(entry.device)):
        with open(read_ahead_path(entry.device), "w", encoding="ascii") as stream:
            stream.write(str(mount.read_ahead_kb))


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
