"""Calls from the chief to the workers: scheduled ahead of need, collected as they end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lib.dispatch import Call, Dispatcher
from lib.errors import StalledError
from lib.pace import Pace


@dataclass(frozen=True)
class Ended:
    """A finished call with its return values or its error."""

    call: Call
    values: Any = None
    error: Exception | None = None


class Calls:
    """The calls in progress, enough of them to keep the workers busy.

    Each result is fetched in its own thread. A call that never returns blocks its lane and, at a barrier, the run, but
    not later calls. The thread includes the fetch, because the values of a finished call are on its worker and fetching
    them may hang, too.

    :param dispatcher: decides which steps come next.
    :param pace: decides how many.
    :param schedule: sends a call to the workers; the returned object has a `fetch()` that waits for the values.
    :param stall_timeout: seconds without a return after which the run gives up.
    """

    def __init__(
        self, dispatcher: Dispatcher, pace: Pace, schedule: Callable[[Call], Any], stall_timeout: float
    ) -> None:
        self._dispatcher, self._pace, self._schedule = dispatcher, pace, schedule
        self._stall_timeout = stall_timeout
        self._handed: dict[Call, tuple[int, float]] = {}
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()

    def hand_out(self) -> None:
        """Schedule enough calls to keep the workers busy for a short time."""
        dispatcher = self._dispatcher
        while self._pace.allows(len(dispatcher.pending), dispatcher.under_way):
            call = dispatcher.next_call(self._pace.steps)
            if call is None:
                return
            self._handed[call] = (dispatcher.under_way, time.monotonic())
            result = self._schedule(call)
            threading.Thread(target=self._wait, args=(call, result), name="call", daemon=True).start()

    def take_in(self, timeout: float) -> Ended | None:
        """Return the next call that ends, in any order; None if none ends in time.

        :param timeout: in seconds.
        :raises StalledError: a call exceeded the stall timeout, regardless of the others.
        """
        try:
            ended = self._ended.get(timeout=timeout)
        except queue.Empty:
            self._look_for_stalled()
            return None
        steps, handed = self._handed.pop(ended.call)
        self._pace.learn(steps, time.monotonic() - handed)
        self._dispatcher.collect(ended.call)
        self._look_for_stalled()
        return ended

    def _look_for_stalled(self) -> None:
        for call, (_, handed) in self._handed.items():
            if time.monotonic() - handed > self._stall_timeout:
                last = call.first + call.count - 1
                raise StalledError(f"Steps {call.first} to {last} did not come back in {self._stall_timeout:.0f} s.")

    def _wait(self, call: Call, result: Any) -> None:
        try:
            self._ended.put(Ended(call, result.fetch()))
        except Exception as error:
            self._ended.put(Ended(call, error=error))
