"""Incremental reading of the logs of a run's pods: their events, and their copies on the controller.

Parts: the events of one process; the logs of one attempt. Memory for events is bounded, because a program may write
them without end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from ..kube.api import Api, KubeError, Object
from ..kube.pod_log import Line, Lines, Position
from .kept_logs import KeptLogs
from .log_events import EVENT_BYTES, Event, heard_in
from .pod_places import pod_state, role_of, started
from .run_state import UNKNOWN_ATTEMPT

HELD_EVENTS = 20_000
"""Number of latest events that are kept."""
HELD_BYTES = 8 * 2**20
"""Bytes of the lines of these events."""
HELD_NAMES = 256
"""Number of kinds and fields whose older events are kept. A hostile program may invent others without end."""


class Said:
    """The events of one process in their order.

    Older events are dropped, except the first and the last of each kind and the last with each field. The last accuracy
    may be a million steps old.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, int, Event]] = deque()
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}
        self._count = self._size = 0
        self.refused = ""
        """Why the last refused event is none, in words."""

    def add(self, event: Event, size: int) -> None:
        """Add the next event.

        :param size: bytes of its line.
        """
        self._count += 1
        self._size += size
        self._recent.append((self._count, size, event))
        while len(self._recent) > HELD_EVENTS or self._size > HELD_BYTES:
            number, old_size, old = self._recent.popleft()
            self._size -= old_size
            # A long event would stay in memory forever because of its fields.
            if old_size <= HELD_BYTES // HELD_NAMES // 4:
                self._remember(number, old)

    def events(self) -> list[Event]:
        """Return the kept events, oldest first."""
        held = dict([*self._first.values(), *self._last.values()])
        return [held[number] for number in sorted(held)] + [event for _, _, event in self._recent]

    def _remember(self, number: int, event: Event) -> None:
        kind = str(event.get("event"))
        if kind in self._first or len(self._first) < HELD_NAMES:
            self._first.setdefault(kind, (number, event))
        for name in (f"event {kind}", *event):
            if name in self._last or len(self._last) < HELD_NAMES:
                self._last[name] = (number, event)


TAIL = 1_000
"""Lines requested at a time. A node finds the end of a log at once, but a timestamp only by reading all of it."""
MOST_BYTES = 64 * 2**20
"""Bytes read from a running pod per call. A pod that writes faster than it is read would block the reader forever."""
WRITE_BYTES = 4 * 2**20
"""Bytes buffered before they are written."""
FIRST_BYTES = 16 * 2**20
"""Bytes buffered before the first write, whose length is compared with the copy of another follower."""


def kept_logs(log_dir: str, namespace: str, run: str, attempt: str) -> KeptLogs:
    """Return the kept logs of an attempt at a run. They keep nothing if `log_dir` is empty."""
    return KeptLogs(log_dir, f"{namespace}-{run}", attempt or UNKNOWN_ATTEMPT) if log_dir else KeptLogs()


@dataclass
class _OfPod:
    """State of reading the log of one pod."""

    role: str
    position: Position = field(default_factory=Position)
    said: Said = field(default_factory=Said)
    new: bytearray = field(default_factory=bytearray)
    kept: bool = False
    broken: bool = False
    """True if its container ended within a line. A restarted container may write more."""
    whole: bool = False


class PodLogs:
    """The logs of one attempt.

    :param kept: receives the lines; it may keep nothing.
    :param first: number of last lines that the first reading of a pod requests; None for all.
    """

    def __init__(self, api: Api, kept: KeptLogs, first: int | None = None) -> None:
        self._api = api
        self._first = first
        self._pods: dict[str, _OfPod] = {}
        self.kept = kept

    def read(self, pod: Object) -> bool:
        """Keep the lines that a pod has written since the last reading.

        :return: False while the pod or its node does not answer.
        :raises KubeError: the server refuses.
        """
        name = pod["metadata"]["name"]
        if not started(pod):
            return True
        mine = self._pods.setdefault(name, _OfPod(role_of(pod)))
        came = False
        try:
            since = mine.position.stamp
            came = self._take(pod, mine, TAIL if since else self._first)
            if not mine.position.found:
                # The tail does not reach back to the last position, so lines would be missed.
                came |= self._take(pod, mine, None)
        except KubeError as error:
            if error.transient or error.status == 500:
                return False
            if not (error.status == 404 or error.no_log):
                raise
        finally:
            if mine.new:
                self._write(name, mine)
        if not mine.kept:
            self._write(name, mine)
        # A deleted pod has no log, either: an empty log is whole only if the pod exists.
        if pod_state(pod)[0] == "ended" and (came or self._is_there(pod)):
            mine.whole = True
        return True

    def read_all(self, pods: Iterable[Object]) -> None:
        for pod in pods:
            self.read(pod)

    def said(self, pod: Object | None) -> list[Event]:
        """Return the events of a pod. If its log cannot be read, they come from the kept log."""
        return self._heard(pod).events() if pod else []

    def refused(self, pod: Object | None) -> str:
        """Return why the last refused event of a pod is none: `accuracy is 'good', not a number`; empty without one."""
        return self._heard(pod).refused if pod else ""

    def _heard(self, pod: Object) -> Said:
        name = pod["metadata"]["name"]
        mine = self._pods.get(name)
        if mine and mine.position.stamp:
            return mine.said
        before = Said()
        for line in self.kept.text(name).split("\n"):
            _hear(before, line.encode("utf-8", "replace"))
        return before

    def is_whole(self, pod: Object) -> bool:
        """Return whether a pod has ended and its log was read to the end."""
        mine = self._pods.get(pod["metadata"]["name"])
        return mine is not None and mine.whole

    def _is_there(self, pod: Object) -> bool:
        meta = pod["metadata"]
        try:
            return self._api.get("v1", "Pod", meta["name"], meta["namespace"]) is not None
        except KubeError:
            return False

    def _take(self, pod: Object, mine: _OfPod, tail: int | None) -> bool:
        """Read one log response as it arrives. Take nothing from a response that leaves lines out.

        :param tail: number of last lines to request; None for all.
        :return: whether the response had any line.
        :raises KubeError: there is no response, or it breaks off.
        """
        meta, at, lines, size, came = pod["metadata"], mine.position, Lines(), 0, False
        running = pod_state(pod)[0] == "running"
        at.begin()
        answer = self._api.log_pieces(meta["namespace"], meta["name"], tail=tail, since=at.stamp, timestamps=True)
        with closing(answer):
            for piece in answer:
                for line in lines.feed(piece):
                    came = True
                    if tail and at.misses(line):
                        return came
                    size += self._line(meta["name"], mine, line)
                if running and size > MOST_BYTES:
                    return came
        for line in lines.rest():
            came = True
            if tail and at.misses(line):
                return came
            if running:
                mine.new += at.open_bytes(line)
            else:
                self._line(meta["name"], mine, line, over=True)
        at.found = True
        return came

    def _line(self, name: str, mine: _OfPod, line: Line, *, over: bool = False) -> int:
        """Add a line; return its size in bytes if it is new, else 0."""
        if not mine.position.is_new(line):
            return 0
        mine.new += (b"\n" if mine.broken else b"") + mine.position.new_bytes(line)
        mine.broken = over and not line.ended
        if line.ended or over:
            _hear(mine.said, line.text, cut=line.cut)
        if len(mine.new) > (WRITE_BYTES if mine.kept else FIRST_BYTES):
            self._write(name, mine)
        return len(line.text)

    def _write(self, name: str, mine: _OfPod) -> None:
        """Write the buffered bytes. An empty log gets a file, too, which shows that it was read."""
        if self.kept.folder:
            # surrogateescape preserves bytes that are not UTF-8.
            self.kept.keep(name, mine.role, mine.new.decode("utf-8", "surrogateescape"), more=mine.kept)
            mine.kept |= bool(mine.new)
        mine.new.clear()


def _hear(said: Said, line: bytes, *, cut: bool = False) -> None:
    event, refused = heard_in(line, cut=cut)
    said.refused = refused or said.refused
    if event is not None:
        said.add(event, min(len(line), EVENT_BYTES))
