"""Other programs that listen on reserved TCP ports. A file of its own, because facts.py has its longest size.

Sockets come from /proc below a root that tests replace (proc(5)).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import port_probe
from .facts import text_of
from .preflight_checks import Reason, reason

LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp (TCP_LISTEN of the kernel's include/net/tcp_states.h)."""


def port_problems(wanted: Mapping[int, str], root: str = "/") -> list[Reason]:
    """Return the wanted ports on which another program listens.

    :param wanted: port -> file name of the only program that may listen there.
    """
    base = Path(root)
    sockets = {inode: port for port, inode in _listening(base) if port in wanted}
    if not sockets:
        return []
    found = []
    for process, program, inode in _holders(base):
        port = sockets.get(inode)
        if port is not None and program != wanted[port]:
            found.append(reason("port", program=program, process=process, port=port, owner=wanted[port]))
    return sorted(set(found), key=str)


def _listening(base: Path) -> Iterator[tuple[int, str]]:
    """Yield port and inode of all listening sockets of this network namespace, on any address."""
    for name in ("tcp", "tcp6"):
        for row in text_of(base / "proc/self/net" / name).splitlines()[1:]:
            _, local, _, state, *rest = row.split()
            if state == LISTEN:
                yield int(local.rpartition(":")[2], 16), rest[5]


def _holders(base: Path) -> Iterator[tuple[int, str, str]]:
    """Yield process ID, program and inode for each socket of each process."""
    for process in (base / "proc").glob("[0-9]*"):
        # A check that was cut off may have left its listener, which ends by itself.
        if text_of(process / "comm").strip() == port_probe.NAME:
            continue
        # The kernel appends this mark if the program's file was replaced while it runs.
        program = os.path.basename(_target(process / "exe")).removesuffix(" (deleted)")
        for descriptor in _listdir(process / "fd"):
            link = _target(process / "fd" / descriptor)
            if link.startswith("socket:["):
                yield int(process.name), program, link[len("socket:[") : -1]


def _target(link: Path) -> str:
    """Return the target of a link in /proc; empty for kernel threads and for processes that have ended meanwhile."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _listdir(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
