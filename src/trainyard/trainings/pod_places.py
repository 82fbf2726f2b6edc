"""The pods of a run by their places, such as `worker-1`, and their states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..kube.api import Object
from .names import DECIDING_ANNOTATION, INDEX_LABEL, ROLE_LABEL

STUCK = ("Unschedulable", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "CreateContainerConfigError")
"""Reasons of a waiting pod that do not resolve themselves within a moment."""


def role_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(ROLE_LABEL, "?"))


def index_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(INDEX_LABEL, "?"))


def place_of(pod: Mapping[str, Any]) -> str:
    return f"{role_of(pod)}-{index_of(pod)}"


def age_order(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Return a sort key that puts the oldest pods first."""
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["uid"]


def newest(pods: Iterable[Object]) -> dict[str, Object]:
    """Return the newest pod of each place, in the order of the places."""
    by_place: dict[str, Object] = {}
    for pod in sorted(pods, key=age_order):
        by_place[place_of(pod)] = pod
    return {place: by_place[place] for place in sorted(by_place, key=_natural)}


def decider(live: Mapping[str, Any] | None) -> str:
    """Return the place whose end decides the run, such as `chief-0`; empty if unknown."""
    return str(((live or {}).get("metadata", {}).get("annotations") or {}).get(DECIDING_ANNOTATION, ""))


def pod_state(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Return `waiting`, `running` or `ended`, and the reason if the pod waits."""
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


def pulls(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod waits only for an image that its node is pulling.

    Its network and volumes are there (KEP-3085), and the kubelet has not begun to wait after a failed pull.
    """
    status = pod.get("status") or {}
    ready = any(
        each["type"] == "PodReadyToStartContainers" and each["status"] == "True"
        for each in status.get("conditions") or []
    )
    waits = [(each.get("state") or {}).get("waiting") for each in status.get("containerStatuses") or []]
    return ready and any(each and each.get("reason") in ("ContainerCreating", "PodInitializing") for each in waits)


def started(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has a log: it runs, has ended, or waits for a restart."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return pod_state(pod)[0] != "waiting" or any("terminated" in each.get("lastState", {}) for each in statuses)


def _natural(place: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", place)]
