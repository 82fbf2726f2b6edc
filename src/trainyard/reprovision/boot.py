"""Detect a recent boot. After a power cut all hosts start at the same time, so a run waits before it checks them."""

from __future__ import annotations

from collections.abc import Callable

from ..core.clock import CLOCK, Clock
from ..core.command import run
from ..core.errors import TrainyardError

PLAYBOOK = "playbooks/_wait.yml"

YOUNG_SECONDS = 900.0
"""Time after the start of this machine in which an unreachable host may still be starting."""

WAIT_SECONDS = 360.0
"""Limit of the whole playbook; its own wait takes up to 300 s."""


def is_young(clock: Clock = CLOCK, show: Callable[[], str] | None = None) -> bool:
    """Return whether this machine started within `YOUNG_SECONDS`.

    :param show: returns the start in microseconds of the monotonic clock, in the form of systemctl. In a container,
        which shares the clock of its machine, this is the start of the container.
    """
    argv = ["systemctl", "show", "--property=UserspaceTimestampMonotonic", "--value"]
    try:
        said = (show or (lambda: run(argv, timeout=20).stdout))().strip()
    except TrainyardError:
        # Without systemd the start of the machine counts.
        said = ""
    return clock.monotonic() - (int(said) / 1e6 if said.isdigit() else 0.0) < YOUNG_SECONDS
