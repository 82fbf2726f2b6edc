"""Decide which steps are handed out next: pure arithmetic, no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, field


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
