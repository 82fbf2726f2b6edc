"""A file system that a unit of systemd mounts: found, mounted, and mounted anew only while nothing uses it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.errors import TrainyardError

UNITS = "/etc/systemd/system"
PODS = "/var/lib/kubelet/"
"""Where the kubelet mounts a part of a volume for a pod, on the host itself."""
MARKS = ("# Managed by trainyard", "Description=Files that the nodes share")
"""Lines by which a unit of ours is known."""
RETRY_SECONDS = 30
"""Between two tries to mount what could not be mounted."""
SHOWN = 3
"""How many entries or programs an error names."""


@dataclass(frozen=True)
class Mount:
    """The wanted mount.

    :param path: absolute path of its folder.
    :param source: what is mounted, as mount(8) takes it: `server:/path`.
    :param fstype: `nfs4`, or the name of a helper such as `efs`.
    :param options: options of mount(8).
    :param read_ahead_kb: KiB that the kernel reads ahead; 0 leaves them alone.
    :param timeout: seconds for mounting, and for unmounting.
    :param probe_timeout: seconds in which its server has to answer.
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

    :param device: `major:minor`, the same in all name spaces.
    """

    device: str
    path: str
    fstype: str
    source: str


def escaped(path: str) -> str:
    """A path as the name of a unit has it, as `systemd-escape --path` does (systemd.unit(5))."""
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
    """The unit of a mount. A percent sign begins a specifier there, so it is doubled.

    Not wanted by remote-fs.target, which logins wait for: a server that is gone would keep all out at the next boot.
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
    """The service that mounts it again, and again, after it could not be mounted: systemd itself tries once.

    After a power cut the server may come up long after the nodes.
    """
    # The command line takes a backslash for the beginning of an escape.
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
    """Where units of ours mount something else: what a changed path has left."""
    found = []
    for path in sorted(glob.glob(os.path.join(units, "*.mount"))):
        lines = _text(path).splitlines() if os.path.isfile(path) else []
        if os.path.basename(path) != mount.unit and set(MARKS) <= set(lines):
            found += [line.removeprefix("Where=").replace("%%", "%") for line in lines if line.startswith("Where=")]
    return found


def differs(mount: Mount, entry: Entry) -> bool:
    """Whether something else is mounted than what is wanted. A helper mounts NFS by a source of its own."""
    if not mount.fstype.startswith("nfs"):
        return mount.fstype == "efs" and entry.fstype != "nfs4"
    return entry.fstype != mount.fstype or _plain_source(entry.source) != _plain_source(mount.source)


def _plain_source(source: str) -> str:
    """A source of NFS as the kernel shows it: no slash twice, none at the end."""
    server, _, path = source.partition(":/")
    return f"{server}:{os.path.normpath('/' + path.lstrip('/'))}"


def parse(mountinfo: str) -> list[Entry]:
    """The lines of a mountinfo (proc_pid_mountinfo(5)), in their order."""
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
    """What is mounted at a path; of several on top of each other the last, which is the one that is seen."""
    return next((each for each in reversed(parse(mountinfo)) if each.path == path), None)


def users(mount: Entry, proc: str = "/proc") -> list[str]:
    """Processes that see the file system at a path at which the host does not, each as `program (pid N)`: pods.

    A server may give a folder below as a file system of its own, which has another device. One process stands for all
    that share its mounts. Services of the host with mounts of their own have it at the same places, which an unmount of
    the host reaches; so does a mount of the same file system that somebody has made beside.
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
            # It has ended meanwhile.
            continue
    return found


def entries_of(path: str) -> list[str]:
    """Names of what lies in a folder; none where there is no folder.

    :raises TrainyardError: it is something else.
    """
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise TrainyardError(f"{path} is not a folder.", remedy="Move it, or mount at another path.") from error


def read_ahead_path(device: str) -> str:
    """Where the kernel keeps how much it reads ahead of one file system."""
    return f"/sys/class/bdi/{device}/read_ahead_kb"


def some(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    return ", ".join(_first(names))


def _first(names: Sequence[str]) -> Iterator[str]:
    yield from names[:SHOWN]
    if len(names) > SHOWN:
        yield f"and {len(names) - SHOWN} more"


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()
