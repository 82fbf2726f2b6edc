"""Calls from the chief to the workers: scheduled ahead of need, collected as they end.

Decide which steps are handed out next: pure arithmetic, no TensorFlow.

Limit the work handed out ahead by time, so that a chief that receives SIGTERM need not wait long for it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.errors import StalledError


@dataclass(frozen=True)
class Call:
    """Steps `first` ... `first + count - 1`, handed out together.

    :param lane: index of the call's progress mark; reusable when the call has been collected.
    """

    first: int
    count: int
    lane: int


@dataclass
class Dispatcher:
    """A scheduler that hands out every step once, in order; the calls may be collected in any order.

    :param start: first step to hand out.
    :param target: step to stop at, 0 for never.
    :param lanes: maximum number of pending calls.
    :param boundaries: no call crosses a multiple of these (0 is ignored).
    :param barrier: at multiples of this, nothing is handed out until all calls are collected and `pass_barrier` is
        called: the moment for a consistent checkpoint. 0 for none.
    """

    start: int
    target: int
    lanes: int
    boundaries: tuple[int, ...] = ()
    barrier: int = 0
    pending: dict[int, Call] = field(default_factory=dict)
    """Pending calls by lane, the oldest first."""

    def __post_init__(self) -> None:
        self.handed_out = self.collected = self._passed = self.start

    @property
    def finished(self) -> bool:
        return bool(self.target) and self.collected >= self.target

    @property
    def at_barrier(self) -> bool:
        """Return whether every step before a barrier is collected and the barrier is not yet passed."""
        return not self.pending and self._barred()

    @property
    def under_way(self) -> int:
        """Return the number of steps that are handed out and not collected."""
        return self.handed_out - self.collected

    def pass_barrier(self) -> None:
        self._passed = self.handed_out

    def next_call(self, limit: int) -> Call | None:
        """Hand out the next steps; return None if none are available now.

        :param limit: maximum steps of the call. The rest up to the next boundary is divided evenly.
        """
        if len(self.pending) >= self.lanes or self._barred() or (self.target and self.handed_out >= self.target):
            return None
        ends = [every - self.handed_out % every for every in (*self.boundaries, self.barrier) if every]
        if self.target:
            ends.append(self.target - self.handed_out)
        left = min(ends, default=limit)
        count = -(-left // -(-left // limit))
        lane = next(lane for lane in range(self.lanes) if lane not in self.pending)
        call = self.pending[lane] = Call(self.handed_out, count, lane)
        self.handed_out += count
        return call

    def collect(self, call: Call) -> None:
        """Record that a call has ended; its steps count as done."""
        del self.pending[call.lane]
        self.collected += call.count

    def _barred(self) -> bool:
        return bool(self.barrier) and self.handed_out % self.barrier == 0 and self.handed_out != self._passed


AHEAD_SECONDS = 0.5
"""Pending work per worker. More would exceed the time that SIGTERM grants. Less makes calls so small that the overhead
per call matters (20 ms on two cores, 50 ms on slow ones: with 0.2 s the latter lose a third of their speed)."""
CALLS_PER_WORKER = 3
"""Maximum pending calls per worker: one running, and enough queued that it never waits for the chief."""

_WANTED_CALLS = 2
_WEIGHT = 0.3


class Pace:
    """The size and number of calls that keep every worker busy for `AHEAD_SECONDS`.

    It learns from each call that ends: since that call was handed out, all workers together did the steps that were
    pending at that moment (Little's law: pending work = throughput x time). In its first run of a call TensorFlow
    prepares its graph, so the pace starts small.

    :param workers: number of workers.
    :param limit: maximum steps per call.
    """

    def __init__(self, workers: int, limit: int) -> None:
        self._workers, self._limit = workers, limit
        self._steps_per_second = 0.0

    def learn(self, steps: int, seconds: float) -> None:
        """Record a call that ended.

        :param steps: steps that were pending when it was handed out, including its own.
        :param seconds: time since then.
        """
        seen = steps / max(seconds, 1e-6)
        old = self._steps_per_second
        self._steps_per_second = old + _WEIGHT * (seen - old) if old else seen

    @property
    def steps(self) -> int:
        """Return the maximum number of steps of the next call."""
        return max(1, min(self._limit, int(self._ahead / (_WANTED_CALLS * self._workers))))

    def allows(self, calls: int, steps: int) -> bool:
        """Return whether another call may be handed out.

        :param calls: pending calls.
        :param steps: their steps.
        """
        return calls < self._workers or (steps < self._ahead and calls < CALLS_PER_WORKER * self._workers)

    @property
    def _ahead(self) -> float:
        """Return the number of steps that all workers do in `AHEAD_SECONDS`."""
        return self._steps_per_second * AHEAD_SECONDS


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
