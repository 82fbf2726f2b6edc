"""File systems that systemd units mount: unit texts, the mount table, and the state of a mount.

The last part reads the state of a mount without blocking on its server.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from .units import newer_paths, properties_of

UNITS = "/etc/systemd/system"
PODS = "/var/lib/kubelet/"
"""Folder in which the kubelet mounts parts of volumes for pods, on the host itself."""
MARKS = ("# Managed by trainyard", "Description=Files that the nodes share")
"""Lines that identify our units."""
RETRY_SECONDS = 30
"""Seconds between two attempts of a failed mount."""
SHOWN = 3
"""Most entries or programs that an error lists."""


@dataclass(frozen=True)
class Mount:
    """The desired mount.

    :param path: absolute path of its folder.
    :param source: source for mount(8): `server:/path`.
    :param fstype: `nfs4`, or the name of a helper such as `efs`.
    :param options: options of mount(8).
    :param read_ahead_kb: read-ahead of the kernel in KiB; 0 does not change it.
    :param timeout: seconds for mounting, and for unmounting.
    :param probe_timeout: seconds within which its server must answer.
    """

    path: str
    source: str = ""
    fstype: str = ""
    options: Sequence[str] = ()
    read_ahead_kb: int = 0
    timeout: int = 60
    probe_timeout: int = 10

    @property
    def unit(self) -> str:
        return f"{escaped(self.path)}.mount"

    @property
    def unit_path(self) -> str:
        return os.path.join(UNITS, self.unit)

    @property
    def retry(self) -> str:
        return f"{escaped(self.path)}-retry.service"

    @property
    def retry_path(self) -> str:
        return os.path.join(UNITS, self.retry)


@dataclass(frozen=True)
class Entry:
    """A line of /proc/PID/mountinfo.

    :param device: `major:minor`, the same in all namespaces.
    """

    device: str
    path: str
    fstype: str
    source: str


def escaped(path: str) -> str:
    """Escape a path for a unit name, like `systemd-escape --path` (systemd.unit(5))."""
    parts = [part for part in path.split("/") if part]
    if not parts:
        return "-"
    text = "/".join(parts)
    return "".join(
        "-" if char == "/" else char if _plain(char, index) else "".join(f"\\x{byte:02x}" for byte in char.encode())
        for index, char in enumerate(text)
    )


def _plain(char: str, index: int) -> bool:
    return char.isascii() and (char.isalnum() or char in ":_" or (char == "." and index > 0))


def unit_text(mount: Mount) -> str:
    """Return the unit of a mount. Percent signs are doubled, because they start a specifier.

    It is not wanted by remote-fs.target, which logins wait for: if the server were gone at boot, no one could log in.
    """
    values = {
        "What": mount.source,
        "Where": mount.path,
        "Type": mount.fstype,
        "Options": ",".join(mount.options),
        "TimeoutSec": str(mount.timeout),
    }
    lines = [f"{name}={value.replace('%', '%%')}" for name, value in values.items() if value]
    return "\n".join(
        [
            MARKS[0],
            "[Unit]",
            MARKS[1],
            "Wants=network-online.target",
            "After=network-online.target",
            f"OnFailure={mount.retry}",
            "",
            "[Mount]",
            *lines,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def retry_text(mount: Mount) -> str:
    """Return the service that retries a failed mount, because systemd itself tries only once.

    After a power cut, the server may start long after the nodes.
    """
    # In ExecStart, a backslash starts an escape sequence.
    unit = mount.unit.replace("\\", "\\\\")
    return f"""{MARKS[0]}
[Unit]
Description=Mount again what could not be mounted
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl start {unit}
Restart=on-failure
RestartSec={RETRY_SECONDS}
"""


def other_places(mount: Mount, units: str = UNITS) -> list[str]:
    """Return other paths that our units mount, which remain after the path was changed."""
    found = []
    for path in sorted(glob.glob(os.path.join(units, "*.mount"))):
        lines = _text(path).splitlines() if os.path.isfile(path) else []
        if os.path.basename(path) != mount.unit and set(MARKS) <= set(lines):
            found += [line.removeprefix("Where=").replace("%%", "%") for line in lines if line.startswith("Where=")]
    return found


def differs(mount: Mount, entry: Entry) -> bool:
    """Return whether the mount differs from the desired one. A helper mounts NFS from a source of its own."""
    if not mount.fstype.startswith("nfs"):
        return mount.fstype == "efs" and entry.fstype != "nfs4"
    return entry.fstype != mount.fstype or _plain_source(entry.source) != _plain_source(mount.source)


def _plain_source(source: str) -> str:
    """Normalise an NFS source to the kernel's form: no double or trailing slashes."""
    server, _, path = source.partition(":/")
    return f"{server}:{os.path.normpath('/' + path.lstrip('/'))}"


def parse(mountinfo: str) -> list[Entry]:
    """Parse the lines of a mountinfo (proc_pid_mountinfo(5)), in order."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if len(fields) >= 5 and len(rest) >= 2:
            found.append(Entry(fields[2], _unescaped(fields[4]), rest[0], _unescaped(rest[1])))
    return found


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def mounted_at(path: str, mountinfo: str) -> Entry | None:
    """Return the mount at a path, or None. If mounts are stacked, the last one is visible and returned."""
    return next((each for each in reversed(parse(mountinfo)) if each.path == path), None)


def users(mount: Entry, proc: str = "/proc") -> list[str]:
    """Return processes of pods that use the file system, each as `program (pid N)`.

    Those are processes that see it at a path at which the host does not. The server may export a subfolder as a file
    system of its own, with another device. One process represents all that share its mount namespace. Host services
    with mount namespaces of their own do not count: they have the mount at the host's paths, which an unmount on the
    host also reaches. The same holds for an additional mount of the file system on the host.
    """
    below = f"{mount.path.rstrip('/')}/"
    hosts = parse(_text(f"{proc}/1/mountinfo"))
    nested = {each.device for each in hosts if each.path.startswith(below) and each.fstype.startswith("nfs")}
    devices = nested | {mount.device}
    places = {each.path for each in hosts if each.device in devices and not each.path.startswith(PODS)} | {mount.path}
    found = []
    seen: set[str] = set()
    for number in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        folder = os.path.join(proc, number)
        try:
            space = os.readlink(f"{folder}/ns/mnt")
            if space in seen:
                continue
            seen.add(space)
            seen_there = [each for each in parse(_text(f"{folder}/mountinfo")) if each.device in devices]
            if any(each.path not in places for each in seen_there):
                name = f"{_text(f'{folder}/comm').strip()} (pid {number})"
                found.append(f"a volume of a pod below {PODS}" if number == "1" else name)
        except OSError:
            # The process has ended meanwhile.
            continue
    return found


def entries_of(path: str) -> list[str]:
    """Return the names in a folder; empty if it does not exist.

    :raises TrainyardError: the path is not a folder.
    """
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise TrainyardError(f"{path} is not a folder.", remedy="Move it, or mount at another path.") from error


def read_ahead_path(device: str) -> str:
    """Return the kernel's path of a file system's read-ahead setting."""
    return f"/sys/class/bdi/{device}/read_ahead_kb"


def some(names: Sequence[str]) -> str:
    """Return the first names, and the number of the rest."""
    return ", ".join(_first(names))


def _first(names: Sequence[str]) -> Iterator[str]:
    yield from names[:SHOWN]
    if len(names) > SHOWN:
        yield f"and {len(names) - SHOWN} more"


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


PROPERTIES = ("LoadState", "FragmentPath", "UnitFileState", "NeedDaemonReload", "ActiveEnterTimestampMonotonic")


@dataclass(frozen=True)
class Seen:
    """The observed state of a mount.

    :param entry: the mount at the path; None if nothing is mounted.
    :param unit: text of our unit; None without one.
    :param retry: text of the service that retries the mount; None without one.
    :param properties: properties of the unit, by systemd's names.
    :param older: whether the unit's file has changed since the mount.
    :param inside: names in the folder, if nothing is mounted.
    :param users: processes that use the file system at another path.
    :param others: other paths at which our units mount something.
    :param answers: whether the server of the mount answers.
    :param read_ahead_kb: read-ahead in KiB; None if nothing is mounted, or the kernel does not report it.
    """

    entry: Entry | None = None
    unit: str | None = None
    retry: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    older: bool = False
    inside: Sequence[str] = ()
    folder: bool = True
    users: Sequence[str] = ()
    others: Sequence[str] = ()
    answers: bool = True
    read_ahead_kb: int | None = None


def observe(mount: Mount, *, removal: bool = False) -> Seen:
    """Read the state of a mount.

    :param removal: do not fail if the server does not answer.
    :raises TrainyardError: the server of the mount did not answer in time.
    """
    entry = entry_at(mount.path)
    properties = properties_of(mount.unit, PROPERTIES)
    seen = Seen(entry, _read(mount.unit_path), _read(mount.retry_path), properties, others=other_places(mount))
    if entry is None:
        return replace(seen, inside=entries_of(mount.path), folder=os.path.isdir(mount.path))
    try:
        probe(mount)
    except TrainyardError:
        if not removal:
            raise
        seen = replace(seen, answers=False)
    started = int(properties.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    ahead = _read(read_ahead_path(entry.device))
    return replace(
        seen,
        older=bool(newer_paths([mount.unit_path], started)),
        users=users(entry),
        read_ahead_kb=int(ahead) if ahead else None,
    )


def probe(mount: Mount) -> None:
    """Query the size of the mounted file system, which only its server knows.

    The query runs in a separate program, because a process blocks for ever if the server is gone.

    :raises TrainyardError: there was no answer in time.
    """
    try:
        run(["stat", "--file-system", mount.path], timeout=mount.probe_timeout)
    except CommandError as error:
        raise TrainyardError(
            f"{mount.path} does not answer within {mount.probe_timeout} s: {error.message}",
            remedy=f"Check that the server of {mount.source} runs and that this host can reach it. Blocked processes "
            "continue by themselves when it is back.",
        ) from error


def entry_at(path: str) -> Entry | None:
    """Return the mount at a path on this host, or None."""
    return mounted_at(path, _read("/proc/self/mountinfo") or "")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
