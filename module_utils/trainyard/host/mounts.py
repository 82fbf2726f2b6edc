"""A file system that a unit of systemd mounts: found, mounted, and mounted anew only while nothing uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.errors import TrainyardError

UNITS = "/etc/systemd/system"
PODS = "/var/lib/kubelet/"
"""Where the kubelet mounts a part of a volume for a pod, on the host itself."""
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
            "# Managed by trainyard",
            "[Unit]",
            "Description=Files that the nodes share",
            "Wants=network-online.target",
            "After=network-online.target",
            "",
            "[Mount]",
            *lines,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


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
    """Who has a file system at another place than the host, each as `program (pid N)`: pods, whose volumes are such.

    One process stands for all that share its mounts. Services of the host with mounts of their own have it at the same
    places, which an unmount of the host reaches; so does a mount of the same file system that somebody has made beside.
    """
    places = {each.path for each in _of(mount, f"{proc}/1/mountinfo") if not each.path.startswith(PODS)} | {mount.path}
    found = []
    seen: set[str] = set()
    for number in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        folder = os.path.join(proc, number)
        try:
            space = os.readlink(f"{folder}/ns/mnt")
            if space in seen:
                continue
            seen.add(space)
            if any(each.path not in places for each in _of(mount, f"{folder}/mountinfo")):
                found.append(f"{_text(f'{folder}/comm').strip()} (pid {number})")
        except OSError:
            # It has ended meanwhile.
            continue
    return found


def _of(mount: Entry, mountinfo: str) -> list[Entry]:
    """All mounts of a file system in one space of mounts."""
    return [each for each in parse(_text(mountinfo)) if each.device == mount.device]


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
