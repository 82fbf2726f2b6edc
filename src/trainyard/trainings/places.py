"""The pods of a run by their places, such as `worker-1`, and what each of them is doing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..kube.api import Object
from .names import DECIDING_ANNOTATION, INDEX_LABEL, ROLE_LABEL

STUCK = ("Unschedulable", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "CreateContainerConfigError")
"""Reasons of a waiting pod that do not pass by themselves in a moment."""


def role_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(ROLE_LABEL, "?"))


def index_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(INDEX_LABEL, "?"))


def place_of(pod: Mapping[str, Any]) -> str:
    return f"{role_of(pod)}-{index_of(pod)}"


def age_order(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Key that sorts pods by their age, the oldest first."""
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["uid"]


def newest(pods: Iterable[Object]) -> dict[str, Object]:
    """The pod that is or was last in each place, in the order of the places."""
    by_place: dict[str, Object] = {}
    for pod in sorted(pods, key=age_order):
        by_place[place_of(pod)] = pod
    return {place: by_place[place] for place in sorted(by_place, key=_natural)}


def decider(live: Mapping[str, Any] | None) -> str:
    """The place whose end is the run's, such as `chief-0`; empty where that is not known."""
    return str(((live or {}).get("metadata", {}).get("annotations") or {}).get(DECIDING_ANNOTATION, ""))


def pod_state(pod: Mapping[str, Any]) -> tuple[str, str]:
    """`waiting`, `running` or `ended`, and why it waits."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return "ended", ""
    for each in status.get("containerStatuses") or []:
        state = each.get("state", {})
        if "running" in state:
            return "running", ""
        if "terminated" in state:
            return "ended", ""
        if "waiting" in state:
            reason, message = state["waiting"].get("reason", "Waiting"), state["waiting"].get("message", "")
            return "waiting", f"{reason}: {message}" if message else reason
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return "waiting", f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}"
    return "waiting", str(status.get("phase", "Pending"))


def started(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has a log: it runs, has ended, or waits to be started again after it ended."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return pod_state(pod)[0] != "waiting" or any("terminated" in each.get("lastState", {}) for each in statuses)


def _natural(place: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", place)]
