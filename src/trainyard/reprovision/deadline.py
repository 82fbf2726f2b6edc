"""The one deadline of a run: the start of the unit sets it, and what remains of it bounds every step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from ..core.untrusted import number

VARIABLE = "TRAINYARD_DEADLINE"
"""Of the environment: when a run begins nothing more, in seconds of the machine's monotonic clock, which is the same
for all its processes."""

CLOSING_SECONDS = 240.0
"""After the deadline, to end a playbook, to write the report and to call the hooks. The unit has 300 (service.j2)."""


class OutOfTimeError(TrainyardError):
    """A step that would begin after the deadline."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock.

    :param ends: in seconds.
    """

    ends: float
    clock: Clock = CLOCK

    @property
    def left(self) -> float:
        """Seconds until it; negative afterwards."""
        return self.ends - self.clock.monotonic()

    @property
    def closing(self) -> float:
        """Seconds that are left to close the run."""
        return self.left + CLOSING_SECONDS

    def bound(self, most: float) -> float:
        """The limit of a step: its own, or what is left.

        :raises OutOfTimeError: nothing is left.
        """
        left = self.left
        if left <= 0:
            raise OutOfTimeError("The time of this run is up.", remedy="Set reprovision_timeout to more seconds.")
        return min(most, left)


def deadline(seconds: float, clock: Clock = CLOCK, environ: Mapping[str, str] = os.environ) -> Deadline:
    """The deadline of a run that begins now: its own time, or an earlier one that the unit's start has set.

    :param seconds: that a run may take.
    """
    ends = clock.monotonic() + seconds
    given = number(environ.get(VARIABLE))
    return Deadline(ends if given is None else min(ends, given), clock)
