"""Memory of all containers of a lab, sampled from their control groups in the background."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
"""Folders of the memory controller: version 1, version 2."""

INTERVAL = 1.0
LOOK_EVERY = 5
"""Samples between two searches for new containers; each search needs a call of the engine."""


@dataclass
class Peak:
    """Largest sums over all containers at one moment, in bytes.

    :param working_set: usage minus the inactive file cache, as the kubelet counts.
    :param resident: anonymous memory and mapped files, without other file cache.
    """

    working_set: int = 0
    resident: int = 0


def measure(folder: Path) -> tuple[int, int]:
    """Return working set and resident bytes of a control group with its descendants, for both versions."""
    stat = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
    version1 = folder / "memory.usage_in_bytes"
    usage = int((version1 if version1.exists() else folder / "memory.current").read_text(encoding="ascii"))
    if version1.exists():
        inactive, resident = int(stat["total_inactive_file"]), int(stat["total_rss"]) + int(stat["total_mapped_file"])
    else:
        inactive, resident = int(stat["inactive_file"]), int(stat["anon"]) + int(stat["file_mapped"])
    return max(usage - inactive, 0), resident


def groups(prefix: str) -> dict[str, Path]:
    """Return the control groups of the running containers whose names begin with `prefix` and a dash."""
    command = ["podman", "ps", "--no-trunc", "--format={{.ID}}", f"--filter=name=^{prefix}-"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    root = next(root for root in ROOTS if root.is_dir())
    return {
        each: folder
        for each in found.stdout.split()
        for folder in sorted(root.rglob(f"libpod-{each}*"))[:1]
        if folder.is_dir()
    }


class Sampler:
    """Samples a lab in the background while the `with` block runs.

    :param prefix: prefix of the containers' names.
    :param nodes: number of the lab's containers; the search ends when they are found.
    """

    def __init__(self, prefix: str, nodes: int = 4) -> None:
        self.peak = Peak()
        self._prefix = prefix
        self._nodes = nodes
        self._groups: dict[str, Path] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self.peak

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=70)

    def _run(self) -> None:
        count = 0
        while not self._ended.wait(INTERVAL):
            if len(self._groups) < self._nodes and count % LOOK_EVERY == 0:
                self._groups = groups(self._prefix)
            count += 1
            self._sample()

    def _sample(self) -> None:
        working_set = resident = 0
        for each, folder in list(self._groups.items()):
            try:
                more = measure(folder)
            except (OSError, KeyError, ValueError):
                del self._groups[each]  # it was restarted, or is gone
                continue
            working_set += more[0]
            resident += more[1]
        self.peak.working_set = max(self.peak.working_set, working_set)
        self.peak.resident = max(self.peak.resident, resident)
