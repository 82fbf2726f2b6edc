"""TCP ports of a host that only one program may listen on, and who listens there instead.

Read from /proc as proc(5) describes it, below a root that tests replace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from .facts import text_of

LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp (TCP_LISTEN of the kernel's include/net/tcp_states.h)."""


def problems(wanted: Mapping[int, str], root: str = "/") -> list[str]:
    """Every wanted port on which another program listens, with the remedy.

    :param wanted: port -> name of the program's file that may listen there.
    """
    base = Path(root)
    sockets = {inode: port for port, inode in _listening(base) if port in wanted}
    if not sockets:
        return []
    found = []
    for process, program, inode in _holders(base):
        port = sockets.get(inode)
        if port is not None and program != wanted[port]:
            found.append(
                f"{program} (process {process}) listens on port {port}, which {wanted[port]} needs. "
                "Stop it, give it another port, or take the port out of base_ports if both can listen there."
            )
    return sorted(set(found))


def _listening(base: Path) -> Iterator[tuple[int, str]]:
    """Port and inode of every listening socket of this network namespace, on whichever address."""
    for name in ("tcp", "tcp6"):
        for row in text_of(base / "proc/self/net" / name).splitlines()[1:]:
            _, local, _, state, *rest = row.split()
            if state == LISTEN:
                yield int(local.rpartition(":")[2], 16), rest[5]


def _holders(base: Path) -> Iterator[tuple[int, str, str]]:
    """Process, its program and the inode of every socket that it holds."""
    for process in (base / "proc").glob("[0-9]*"):
        # The kernel marks the file of a program that was replaced while it runs.
        program = os.path.basename(_target(process / "exe")).removesuffix(" (deleted)")
        for descriptor in _listdir(process / "fd"):
            link = _target(process / "fd" / descriptor)
            if link.startswith("socket:["):
                yield int(process.name), program, link[len("socket:[") : -1]


def _target(link: Path) -> str:
    """What a link of /proc names; empty for a thread of the kernel and for what has ended meanwhile."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _listdir(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
