"""Which steps are handed out next: pure arithmetic, no TensorFlow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """Steps `first` ... `first + count - 1`, handed out together.

    :param lane: index of the call's progress mark; free again when the call has been collected.
    :param result: what the coordinator returned for it.
    """

    first: int
    count: int
    lane: int
    result: Any = None


@dataclass
class Dispatcher:
    """Hands out every step once, in order, and collects the calls in the same order.

    :param start: first step to hand out.
    :param target: step to stop at, 0 for never.
    :param limit: most steps per call.
    :param lanes: most calls under way.
    :param boundaries: no call crosses a multiple of these (0 is ignored).
    :param barrier: at multiples of this, nothing is handed out until all calls are collected and `pass_barrier` is
        called: the moment for a consistent checkpoint. 0 for none.
    """

    start: int
    target: int
    limit: int
    lanes: int
    boundaries: tuple[int, ...] = ()
    barrier: int = 0
    pending: deque[Call] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.handed_out = self.collected = self._passed = self.start
        self._calls = 0

    @property
    def finished(self) -> bool:
        return bool(self.target) and self.collected >= self.target

    @property
    def at_barrier(self) -> bool:
        """Every step before a barrier is collected, and the barrier was not passed yet."""
        return not self.pending and self._barred()

    def pass_barrier(self) -> None:
        self._passed = self.handed_out

    def next_call(self) -> Call | None:
        """The next steps to hand out, None when there are none now."""
        if len(self.pending) >= self.lanes or self._barred() or (self.target and self.handed_out >= self.target):
            return None
        count = self.limit
        for every in (*self.boundaries, self.barrier):
            if every:
                count = min(count, every - self.handed_out % every)
        if self.target:
            count = min(count, self.target - self.handed_out)
        return Call(self.handed_out, count, self._calls % self.lanes)

    def handed(self, call: Call) -> None:
        """The call is under way."""
        self.pending.append(call)
        self.handed_out += call.count
        self._calls += 1

    def collect(self) -> Call:
        """The oldest call under way; its steps count as done."""
        call = self.pending.popleft()
        self.collected += call.count
        return call

    def _barred(self) -> bool:
        return bool(self.barrier) and self.handed_out % self.barrier == 0 and self.handed_out != self._passed
