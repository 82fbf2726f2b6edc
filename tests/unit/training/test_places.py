"""Pods by their places, and what each is doing."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.trainings.names import INDEX_LABEL, ROLE_LABEL
from trainyard.trainings.pod_places import newest, pod_state, pulls


def container(state: dict) -> dict:
    return {"containerStatuses": [{"state": state}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, ("waiting", "Pending")),
        (
            container({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}),
            ("waiting", "ImagePullBackOff: not found"),
        ),
        (container({"running": {}}), ("running", "")),
        ({"phase": "Failed"}, ("ended", "")),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no cpu"}
                ]
            },
            ("waiting", "Unschedulable: no cpu"),
        ),
    ],
)
def test_pod_state(status: dict, expected: tuple[str, str]) -> None:
    assert pod_state({"status": status}) == expected


def pod(name: str, place: tuple[str, str], created: str) -> dict[str, Any]:
    labels = {ROLE_LABEL: place[0], INDEX_LABEL: place[1]}
    return {"metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": created}}


def test_the_newest_pod_of_each_place_in_the_order_of_people() -> None:
    early, late = "2026-11-21T12:00:00Z", "2026-11-21T12:01:00Z"
    pods = [pod(f"w{n}", ("worker", str(n)), early) for n in (10, 2)] + [pod("new", ("chief", "0"), late)]
    found = newest([*pods, pod("old", ("chief", "0"), early)])
    assert {place: each["metadata"]["name"] for place, each in found.items()} == {
        "chief-0": "new",
        "worker-2": "w2",
        "worker-10": "w10",
    }
    assert list(found) == ["chief-0", "worker-2", "worker-10"]


@pytest.mark.parametrize(
    ("ready", "waiting", "expected"),
    [
        ("True", {"reason": "ContainerCreating"}, True),
        ("True", {"reason": "PodInitializing"}, True),
        # Its network or a volume is missing; a pull has failed; a Secret is missing.
        ("False", {"reason": "ContainerCreating"}, False),
        ("True", {"reason": "ImagePullBackOff"}, False),
        ("True", {"reason": "ErrImagePull"}, False),
        ("True", {"reason": "CreateContainerConfigError"}, False),
        ("True", None, False),
    ],
)
def test_a_pull_differs_from_other_waits(ready: str, waiting: dict | None, expected: bool) -> None:
    state = {"waiting": waiting} if waiting else {"running": {}}
    conditions = [{"type": "PodReadyToStartContainers", "status": ready}]
    assert pulls({"status": {**container(state), "conditions": conditions}}) is expected
    assert pulls({"status": container(state)}) is False, "a kubelet that does not report the condition"
    assert pulls({}) is False
