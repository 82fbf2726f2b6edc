"""What the process that decides a run says, as it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.module_utils.trainyard.core.untrusted import plain
from ansible.module_utils.trainyard.training.logs import events

from .api import Client
from .lines import LINE_BYTES, Splitter

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
        self._last = ""
        self._second, self._in_second = "", 0

    async def follow(self, client: Client, token: str, heard: Callable[[], None]) -> None:
        """Pass on lines until the log or the connection ends; the next call goes on after the last one.

        :raises LoginEnded, KubeError: the server refuses or does not answer.
        """
        query = {"follow": "true", "timestamps": "true", "container": self._container}
        query |= {"sinceTime": self._last} if self._last else {"tailLines": str(FIRST_LINES)}
        splitter = Splitter(LINE_BYTES)
        async with client.stream(token, f"{self.path}/log", query) as chunks:
            heard()
            async for chunk in chunks:
                heard()
                for line, cut in splitter.feed(chunk):
                    self._line(line, cut)

    def _line(self, line: bytes, cut: bool) -> None:
        stamp, _, text = line.decode("utf-8", "replace").partition(" ")
        # The server knows whole seconds only, so lines of the last one come again.
        if stamp <= self._last or not stamp[:1].isdigit():
            return
        self._last = stamp
        if cut or not text.startswith("{"):
            return
        if stamp[:19] != self._second:
            self._second, self._in_second = stamp[:19], 0
        for event in events(text):
            self._in_second += 1
            if self._in_second <= A_SECOND:
                self._said(plain(event))
