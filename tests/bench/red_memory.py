"""Memory of this program's own child processes on the controller, sampled during an attack."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from types import TracebackType

INTERVAL = 0.5


def resident(proc: Path = Path("/proc")) -> dict[int, tuple[int, int]]:
    """Return process -> its parent and its resident bytes, for all readable processes."""
    found = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended
        parent = re.search(r"^PPid:\s+(\d+)$", status, re.MULTILINE)
        size = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        if parent and size:
            found[int(folder.name)] = int(parent[1]), int(size[1]) * 1024
    return found


def largest(found: dict[int, tuple[int, int]], root: int) -> int:
    """Return the resident bytes of the largest descendant of a process; 0 if there is none."""
    below, more = {root}, True
    while more:
        added = {pid for pid, (parent, _) in found.items() if parent in below} - below
        below, more = below | added, bool(added)
    return max((found[pid][1] for pid in below - {root} if pid in found), default=0)


class Children:
    """Samples in the background while the `with` block runs; `most` is the size of the largest process, in bytes."""

    def __init__(self) -> None:
        self.most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Children:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL):
            self.most = max(self.most, largest(resident(), os.getpid()))
