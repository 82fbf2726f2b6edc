"""Deliberate faults of a converge, while it is running or before it starts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import cuts
import hindrances
from hindrances import must_work
from mishaps import until
from schedule_site import CONTROLLER, WORKER
from schedule_stand import UNIT, Ended, Scheduled

KILLS, CONTROLLER_CUTS, WORKER_CUTS = 10, 3, 2
OFF_SECONDS = 15.0
BOOT_SECONDS = 240.0
LATEST = 0.9
"""Share of the duration of an undisturbed converge: later faults may come after its end."""
AT_ONCE = (0.0, 0.01)


@dataclass(frozen=True)
class Mishap:
    """One fault.

    :param words: text for the table.
    :param do: causes the fault during the converge started by `begin`, and returns the end of that; None if unknown
        because its machine has lost its power.
    :param share: range of its time, as a share of the duration of an undisturbed converge.
    :param statuses: permitted exit statuses of the disturbed run; empty for any.
    :param before: prepares the fault before the converge is started.
    :param after: repairs the damage when the disturbed run has ended.
    :param end: removes the preparations after the next run.
    """

    words: str
    do: Callable[[Scheduled], Ended | None]
    share: tuple[float, float] = (0.0, LATEST)
    statuses: tuple[int, ...] = ()
    before: Callable[[Scheduled], object] = bool
    after: Callable[[Scheduled], object] = bool
    end: Callable[[Scheduled], object] = bool


def kill(whom: str) -> Callable[[Scheduled], Ended]:
    """End the run by signal 9: only its main process, or all of it."""

    def do(stand: Scheduled) -> Ended:
        must_work(stand)
        stand.on_node(CONTROLLER, "systemctl", "kill", f"--kill-whom={whom}", "--signal=KILL", UNIT)
        return stand.wait()

    return do


def power_of_controller(stand: Scheduled) -> None:
    must_work(stand)
    stand.power_off(CONTROLLER)
    stand.power_on(CONTROLLER)


def power_of_worker(stand: Scheduled) -> Ended:
    """Cut the power shortly after the worker's repair has begun, which the report states before any change."""

    def repairs() -> bool:
        must_work(stand)
        return any(each and each["state"] == "running" and each["repaired"] for each in stand.look()["reports"])

    until("the repair", repairs, 300)
    time.sleep(random.uniform(1, 8))
    must_work(stand)
    stand.power_off(WORKER)
    time.sleep(OFF_SECONDS)
    stand.power_on(WORKER)
    return stand.wait()


def ready(stand: Scheduled) -> None:
    until("a worker that is Ready", lambda: cuts.ready(stand.api, WORKER) == "True", BOOT_SECONDS, pause=3)


MISHAPS = {
    **{
        f"kill_{number}": Mishap(
            f"signal 9 {'to all of it' if number % 2 else 'to its main process'}, {number + 1} of {KILLS}",
            kill("all" if number % 2 else "main"), (LATEST * number / KILLS, LATEST * (number + 1) / KILLS),
        )
        for number in range(KILLS)
    },
    **{
        f"controller_off_{number}": Mishap(
            f"power cut of the controller, {number + 1} of {CONTROLLER_CUTS}", power_of_controller,
            (LATEST * number / CONTROLLER_CUTS, LATEST * (number + 1) / CONTROLLER_CUTS),
        )
        for number in range(CONTROLLER_CUTS)
    },
    **{
        f"worker_off_{number}": Mishap(
            f"power cut of the worker during its repair, {number + 1} of {WORKER_CUTS}",
            power_of_worker, AT_ONCE, after=ready,
        )
        for number in range(WORKER_CUTS)
    },
    "disk": Mishap(
        "full disk below the state directory", lambda stand: stand.wait(), AT_ONCE, (2, 5),
        hindrances.script(hindrances.FULL), hindrances.script(hindrances.ROOM), hindrances.script(hindrances.BACK),
    ),
    "webhook": Mishap(
        "webhook that takes a connection and says nothing", hindrances.hung, AT_ONCE, (1,), hindrances.hang,
        hindrances.no_more,
    ),
    "clock": Mishap(
        "clock that jumps two hours forward, and back", hindrances.clock,
        # Not before the run has its name, which contains its start time.
        (0.3, LATEST), before=hindrances.shiftable, after=hindrances.right_again,
    ),
    "network": Mishap(
        f"network of the controller cut for {hindrances.CUT_SECONDS:.0f} s", hindrances.network, (0.1, 0.8)
    ),
}  # fmt: skip
"""Faults by name. The ten kills are at random times, one in each tenth of a converge."""
