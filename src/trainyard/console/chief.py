"""What the process that decides a run says, as it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.untrusted import plain
from ..kube.pod_log import Line, Lines, Position
from ..trainings.logs import event_in
from .api import Client
from .lines import LINE_BYTES

FIRST_LINES = 2_000
"""Of the log as it is when it is followed; a browser has drawn what was before."""
A_SECOND = 200
"""Lines of ours that are taken of one second of the log; a training says a few."""


class ChiefLog:
    """The log of one pod.

    :param path: of the pod.
    :param said: called with the fields of a JSON line of ours.
    """

    def __init__(self, path: str, container: str, said: Callable[[dict[str, Any]], None]) -> None:
        self.path = path
        self._container = container
        self._said = said
        self._at = Position()
        self._second, self._in_second = "", 0

    async def follow(self, client: Client, token: str, heard: Callable[[], None]) -> None:
        """Pass on lines until the log or the connection ends; the next call goes on after the last one.

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
        # What has not ended may be the last word of its program; else it comes again, whole.
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
