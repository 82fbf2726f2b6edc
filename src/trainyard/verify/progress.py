"""The check of a running training: it makes steps, or is still within its time to start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ..kube.api import Object
from ..trainings.logs import Event, last
from ..trainings.places import newest, pod_state
from ..trainings.state import created
from .reading import RunSeen, Unread, Wanted
from .verdict import FAIL, PASS, UNKNOWN, Check

LEFT_ALONE = "its description differs from the site's, and it was left unchanged"


def progress(want: Wanted, seen: RunSeen, now: datetime, *, left_alone: bool = False) -> Check:
    """Check that the last step of a running training is younger than `stall_timeout`.

    Before the first step, check that its youngest pod is younger than the time to start.

    :param now: by the clock of this machine; times of steps come from the clock of their node.
    """
    for part in (seen.pods, seen.said):
        if isinstance(part, Unread):
            return Check("training", UNKNOWN, part.reason, part.settles)
    pods = [] if isinstance(seen.pods, Unread) else seen.pods
    said = [] if isinstance(seen.said, Unread) else seen.said
    live = None if isinstance(seen.live, Unread) else seen.live
    wrong, well = _judged(want, live, pods, said, now)
    told = f"{want.name} is running" + (f" ({LEFT_ALONE})" if left_alone else "")
    return Check("training", FAIL if wrong else PASS, f"{told}: {wrong or well}")


def _judged(
    want: Wanted, live: Object | None, pods: Sequence[Object], said: Sequence[Event], now: datetime
) -> tuple[str, str]:
    """Return (fault, description) of the progress, one of them empty; both are the same for the same state."""
    states = {place: pod_state(pod) for place, pod in newest(pods).items()}
    waiting = [f"{place} {why}" for place, (state, why) in states.items() if state == "waiting"]
    step = last(said, "step")
    if isinstance(step.get("time"), int | float):
        if now.timestamp() - step["time"] > want.stall_timeout:
            parts = [f"it has made no step for more than stall_timeout, {want.stall_timeout:g} s", *waiting]
            return "; ".join(parts), ""
        return "", f"its last step is younger than stall_timeout, {want.stall_timeout:g} s"
    age = now.timestamp() - _youngest(live, pods)
    if waiting or not pods:
        if age > want.start_timeout:
            what = "; ".join(waiting) or "it has no pods"
            return f"not all its pods ran within start_timeout, {want.start_timeout:g} s: {what}", ""
        return "", "it is starting"
    if said and age > want.start_timeout + want.stall_timeout:
        return f"it has made no step within {want.start_timeout + want.stall_timeout:g} s of its start", ""
    return "", "it is starting" if said else "all its pods run, and it reports no steps"


def _youngest(live: Any, pods: Sequence[Object]) -> float:
    """Return when the youngest part of the run was created, in seconds since the epoch: a restart resets the time."""
    times = [created(live), *(pod["metadata"]["creationTimestamp"] for pod in pods)]
    return max(datetime.fromisoformat(each).timestamp() for each in times if each)
