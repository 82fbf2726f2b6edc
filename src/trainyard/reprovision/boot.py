"""After a boot: hosts that start at the same time, as after a power cut, are waited for before they are looked at."""

from __future__ import annotations

from collections.abc import Callable

from ..core.clock import CLOCK, Clock
from ..core.command import run
from ..core.errors import TrainyardError

PLAYBOOK = "playbooks/_wait.yml"

YOUNG_SECONDS = 900.0
"""After the start of this machine, within which a host that does not answer may be one that starts as well."""

WAIT_SECONDS = 360.0
"""For the playbook as a whole; it waits for 300 s."""


def is_young(clock: Clock = CLOCK, show: Callable[[], str] | None = None) -> bool:
    """Whether this machine was started a short time ago.

    :param show: returns when, in microseconds of the monotonic clock, as systemctl says it: in a container, whose
        clock is that of its machine, this is the start of the container.
    """
    argv = ["systemctl", "show", "--property=UserspaceTimestampMonotonic", "--value"]
    try:
        said = (show or (lambda: run(argv, timeout=20).stdout))().strip()
    except TrainyardError:
        # No systemd: then the machine's own start counts.
        said = ""
    return clock.monotonic() - (int(said) / 1e6 if said.isdigit() else 0.0) < YOUNG_SECONDS
