"""Conditions for the runs of a schedule, as functions of their results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from schedule_stand import Ended
from timed import BenchError

WARM, LAST = 5, 5
"""Runs before memory and etcd are compared, and runs that are compared at both ends."""
REFUSED_SECONDS = 5.0
KEPT_RUNS = 20
"""Runs whose events and output are kept, the role's default; two files each, in addition to the two of a report."""


def growth(values: Sequence[float]) -> float:
    """Return the relative growth of a series: the median of its last values against that of those after the warm-up.

    :raises BenchError: it is too short.
    """
    if len(values) < WARM + 2 * LAST:
        raise BenchError(f"{len(values)} values are too few to tell whether they grow.")
    return median(values[-LAST:]) / median(values[WARM : WARM + LAST]) - 1


def wrong(report: dict[str, Any] | None) -> str:
    """Return the fault of the report of a run on an untouched site; empty if there is none."""
    if report is None or report["state"] != "complete":
        return "there is no complete report"
    if report["exit_status"] != 0 or report["verdict"] != "pass":
        return f"it ended with {report['exit_status']}, verdict {report['verdict']}: {report['headline']}"
    if report["items"] or report["consequences"] or report["repaired"]:
        return f"it has items: {[item['subject'] for item in report['items']]}, repaired {report['repaired']}"
    return ""


def files_kept(runs: int) -> int:
    """Return the number of files that complete runs keep."""
    return 2 * runs + 2 * min(runs, KEPT_RUNS)


def refused(ends: Sequence[Ended]) -> list[float]:
    """Return the seconds of the refused starts.

    :raises BenchError: not exactly one start ran, or a refusal took too long.
    """
    statuses = sorted(each.status for each in ends)
    if statuses != [0, *[4] * (len(ends) - 1)]:
        said = next((each.said for each in ends if each.status not in (0, 4)), "")
        raise BenchError(f"Of {len(ends)} starts at once these are the exit statuses: {statuses}. {said}")
    seconds = [each.seconds for each in ends if each.status == 4]
    if max(seconds) > REFUSED_SECONDS:
        raise BenchError(f"One of {len(ends)} starts was refused after {max(seconds):.1f} s.")
    return seconds
