"""Logs of a run's pods in a folder on the controller: one file per pod, with a size limit per run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..core.errors import TrainyardError
from ..core.untrusted import open_below, path_below
from ..kube.pod_log import readable

LAST_LINES = 12
"""Lines of each role's log that an error quotes."""
RUN_BYTES = 64 * 2**20
"""Limit in bytes for all attempts at one run. A user controls how much the pods print."""
_NAME_BYTES = 240
"""Bytes of a pod's name in the name of a file: Kubernetes allows 253, a file system 255 with the suffix."""
_TAIL_BYTES = 2**16
"""Bytes at the end of a file that are searched for the last lines."""
_COPY_BYTES = 2**20


def log_file(pod: str) -> str:
    """Return the file name of a pod's log."""
    return f"{pod[:_NAME_BYTES]}.log"


def dropped_note(size: int) -> str:
    """Return the line that replaces older lines."""
    return f"trainyard: older lines were dropped here; the logs of a run keep {size >> 20} MiB\n"


class KeptLogs:
    """The kept logs of one attempt at a run.

    Names of runs, pods and attempts come from the cluster: each must be one plain component of the path, and no link is
    followed.

    :param log_dir: folder on the controller, created on the first write; empty to keep nothing.
    :param run: namespace and name of the run, as one component of a path.
    :param attempt: name of the attempt, as `state.attempt_of` returns it.
    :param limit: size limit of all files of the run, in bytes.
    :raises UntrustedError: a component is not a plain name.
    """

    def __init__(self, log_dir: str = "", run: str = "", attempt: str = "", *, limit: int = RUN_BYTES) -> None:
        self._log_dir, self._run, self._attempt, self._limit = log_dir, run, attempt, limit
        self.folder = path_below(log_dir, run, attempt) if log_dir else ""
        self._roles: dict[str, str] = {}
        self._there: dict[str, int] = {}
        self._total: int | None = None

    def keep(self, pod: str, role: str, text: str, *, more: bool = False) -> None:
        """Write what was read of a pod's log from its beginning.

        A shorter text never replaces a longer one, which another program has kept for the same attempt.

        :param more: the text follows what was kept before.
        :raises TrainyardError: the file system refuses, or the path contains a link.
        """
        file = log_file(pod)
        data = text.encode("utf-8", "surrogateescape")
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if more else 0)
        try:
            with open(self._open(file, flags), "wb") as stream:
                self._roles[file] = role
                size = os.fstat(stream.fileno()).st_size
                if not more and size >= len(data):
                    # The file also has what follows this text, unless its beginning was dropped.
                    self._there[file] = size - len(data) if data and not self._is_cut(file) else 0
                    return
                if more and (known := min(self._there.get(file, 0), len(data))):
                    self._there[file] -= known
                    data = data[known:]
                if not more:
                    stream.truncate()
                # If the text exceeds the limit of the run, only its end is written.
                stream.write(data[-self._limit :])
            self._total = None if self._total is None else self._total + len(data) - (0 if more else size)
            self._make_room()
        except OSError as error:
            raise TrainyardError(
                f"The log {os.path.join(self.folder, file)} cannot be written: {error.strerror}.",
                remedy="Set another log_dir.",
            ) from error

    def text(self, pod: str) -> str:
        """Return the kept log of a pod; empty if there is none."""
        if not self.folder:
            return ""
        try:
            with open(self._open(log_file(pod), os.O_RDONLY), encoding="utf-8", errors="replace", newline="\n") as file:
                return file.read()
        except OSError:
            return ""

    @property
    def paths(self) -> list[str]:
        """Paths of this attempt's files that this object has written."""
        return sorted(
            path for path in (os.path.join(self.folder, file) for file in self._roles) if os.path.exists(path)
        )

    def tails(self) -> str:
        """Return the last lines of every kept log below the pod's name, without terminal control sequences."""
        parts = []
        for file in sorted(self._roles):
            with contextlib.suppress(OSError), open(self._open(file, os.O_RDONLY), "rb") as stream:
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL_BYTES))
                shown = "\n".join(map(readable, stream.read().rstrip().split(b"\n")[-LAST_LINES:]))
                parts.append(f"--- {self._roles[file]}: {file.removesuffix('.log')}\n" + (shown or "(nothing)"))
        return "\n".join(parts)

    def _is_cut(self, file: str) -> bool:
        note = dropped_note(self._limit).encode()
        with open(self._open(file, os.O_RDONLY), "rb") as stream:
            return stream.read(len(note)) == note

    def _open(self, file: str, flags: int, attempt: str = "") -> int:
        return open_below(self._log_dir, self._run, attempt or self._attempt, file, flags=flags)

    def _make_room(self) -> None:
        """Drop the oldest lines of the run: first those of other attempts, then half of each file, longest first."""
        if self._total is None:
            self._total = sum(size for _, _, _, size in self._files())
        if self._total <= self._limit:
            return
        # Sorted by file times, because a user can choose the name of an attempt.
        files = sorted(self._files())
        other = [each for each in files if each[1] != self._attempt]
        mine = sorted((each for each in files if each[1] == self._attempt), key=lambda each: -each[3])
        for _, attempt, file, size in [*other, *mine]:
            if self._total <= self._limit:
                break
            keep = min(size, self._limit) // 2 if attempt == self._attempt else 0
            self._total += self._cut(attempt, file, keep) - size

    def _files(self) -> Iterator[tuple[float, str, str, int]]:
        """Yield modification time, attempt, file name and size in bytes of every kept log of the run."""
        run = os.path.join(self._log_dir, self._run)
        for attempt in os.listdir(run):
            folder = os.path.join(run, attempt)
            if os.path.islink(folder) or not os.path.isdir(folder):
                continue
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".log") and entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        yield found.st_mtime, attempt, entry.name, found.st_size

    def _cut(self, attempt: str, file: str, keep: int) -> int:
        """Reduce a file to a note and its last lines, at most `keep` bytes; return the new size."""
        note = dropped_note(self._limit).encode()
        with open(self._open(file, os.O_RDWR, attempt), "r+b") as stream:
            size = os.fstat(stream.fileno()).st_size
            source, target = max(0, size - keep), len(note)
            stream.seek(source)
            if source:
                # Skip to the next line end, so that the first kept line is complete. There may be none.
                source += len(stream.readline(_COPY_BYTES))
            if source < target:
                return size
            # Copy in place, by blocks: the write position stays below the read position, and the file never grows.
            stream.seek(0)
            stream.write(note)
            while source < size:
                stream.seek(source)
                block = stream.read(_COPY_BYTES)
                stream.seek(target)
                stream.write(block)
                source, target = source + len(block), target + len(block)
            stream.truncate(target)
        return target
