"""Conditions for a fault to be visible from outside, in the same snapshot that is judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainyard.kube.placement import unplaced
from trainyard.kube.reads import Unread
from trainyard.trainings.log_events import events, last
from trainyard.why.snapshot import Snapshot
from trainyard.why.view import View, containers, terminated

Object = dict[str, Any]


def is_unplaced(seen: Snapshot) -> bool:
    return any(unplaced(pod) is not None for pod in pods(seen))


def is_refused(seen: Snapshot) -> bool:
    found = seen.parts["events"]
    mine = (
        []
        if isinstance(found, Unread)
        else [each["involvedObject"] for each in found if each["reason"] == "FailedCreate"]
    )
    return any(str(each.get("name")).startswith(seen.run) for each in mine)


def is_without_image(seen: Snapshot) -> bool:
    reasons = [
        ((each.get("state") or {}).get("waiting") or {}).get("reason") for pod in pods(seen) for each in containers(pod)
    ]
    return any(reason in ("ErrImagePull", "ImagePullBackOff") for reason in reasons)


def is_over(seen: Snapshot) -> bool:
    return any(terminated(pod).get("exitCode") for pod in pods(seen))


def is_made(seen: Snapshot) -> bool:
    return bool(pods(seen))


def has_begun(seen: Snapshot) -> bool:
    """Return whether the chief has logged its start: from then on it connects to the others."""
    return any(last(events(text), "start") for text in seen.logs.values() if isinstance(text, str))


def is_lost(seen: Snapshot) -> bool:
    nodes = seen.parts["nodes"]
    conditions = [] if isinstance(nodes, Unread) else [each for node in nodes for each in node["status"]["conditions"]]
    return any(each["type"] == "Ready" and each["status"] != "True" for each in conditions)


def is_silent(seen: Snapshot) -> bool:
    """Return whether no step has come for twice the usual time; the injection is older than that."""
    view = View(seen)
    return bool(view.steps_since) and view.now.timestamp() - view.steps_since > 2.0


def pods(seen: Snapshot) -> Iterable[Object]:
    found = seen.parts.get("pods", [])
    return [] if isinstance(found, Unread) else found
