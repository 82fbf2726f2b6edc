"""Follow the log of the deciding process of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.untrusted import plain
from ..kube.pod_log import Line, Lines, Position
from ..trainings.logs import event_in
from .api import Client
from .lines import LINE_BYTES

FIRST_LINES = 2_000
"""Lines to read at the start of following; a browser has already drawn the earlier ones."""
A_SECOND = 200
"""Maximum event lines per second of the log; a training writes a few."""


class ChiefLog:
    """The log of one pod.

    :param path: of the pod.
    :param said: called with the fields of each event, which is a JSON line of this project.
    """

    def __init__(self, path: str, container: str, said: Callable[[dict[str, Any]], None]) -> None:
        self.path = path
        self._container = container
        self._said = said
        self._at = Position()
        self._second, self._in_second = "", 0

    async def follow(self, client: Client, token: str, heard: Callable[[], None]) -> None:
        """Report events until the log or the connection ends; the next call continues after the last one.

        :raises LoginEnded, KubeError: the server refuses or does not answer.
        """
        query = {"follow": "true", "timestamps": "true", "container": self._container}
        query |= {"sinceTime": self._at.stamp} if self._at.stamp else {"tailLines": str(FIRST_LINES)}
        lines = Lines(LINE_BYTES, last=True)
        self._at.begin()
        async with client.stream(token, f"{self.path}/log", query) as chunks:
            heard()
            async for chunk in chunks:
                heard()
                for line in filter(self._at.is_new, lines.feed(chunk)):
                    self._line(line)
        # A line without an end may be the last one of the program; otherwise it arrives again in full.
        for line in lines.rest():
            if event_in(line.text, cut=line.cut) and self._at.is_new(line):
                self._line(line)

    def _line(self, line: Line) -> None:
        event = event_in(line.text, cut=line.cut)
        if event is None:
            return
        if line.stamp[:19] != self._second:
            self._second, self._in_second = line.stamp[:19], 0
        self._in_second += 1
        if self._in_second <= A_SECOND:
            self._said(plain(event))
