"""A run that goes on is judged by its last step, or by the time that it has had to start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from trainyard.verify.observation import RunSeen, Unread, Wanted
from trainyard.verify.training_checks import progress
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

WANT = Wanted(
    name="m", namespace="trainings", topology="parameter_server", train_steps=200, start_timeout=300, stall_timeout=120
)
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LONG_AGO, JUST_NOW = "2026-11-21T11:00:00Z", "2026-11-21T11:59:00Z"
RUNS = {"containerStatuses": [{"state": {"running": {}}}]}
WAITS = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes have 8 cpu"}
    ]
}


def pod(place: str = "chief-0", status: dict[str, Any] = RUNS, created: str = LONG_AGO) -> dict[str, Any]:
    role, index = place.split("-")
    labels = {"trainyard.dev/role": role, "batch.kubernetes.io/job-completion-index": index}
    meta = {"name": f"m-{place}", "uid": place + created, "labels": labels, "creationTimestamp": created}
    return {"metadata": meta, "status": status}


def step(age: float) -> dict[str, Any]:
    return {"event": "step", "step": 40, "time": NOW.timestamp() - age}


LIVE = {"kind": "JobSet", "metadata": {"creationTimestamp": LONG_AGO}}


@pytest.mark.parametrize(
    ("pods", "said", "result", "detail"),
    [
        ([pod()], [step(3)], PASS, "m is running: its last step is younger than stall_timeout, 120 s"),
        ([pod()], [step(500), step(119)], PASS, "its last step is younger"),
        ([pod()], [step(121)], FAIL, "it has made no step for more than stall_timeout, 120 s"),
        ([pod(), pod("worker-1", WAITS)], [step(121)], FAIL, "worker-1 Unschedulable: 0/3 nodes have 8 cpu"),
        # A worker that finds no place does not end a run that goes on without it.
        ([pod(), pod("worker-1", WAITS)], [step(3)], PASS, "its last step is younger"),
        ([pod(created=JUST_NOW)], [{"event": "start"}], PASS, "it is starting"),
        ([pod(status=WAITS, created=JUST_NOW)], [], PASS, "it is starting"),
        ([pod(status=WAITS)], [], FAIL, "not all its pods ran within start_timeout, 300 s: chief-0 Unschedulable"),
        ([], [], FAIL, "it has no pods"),
        ([pod()], [{"event": "start"}], FAIL, "it has made no step within 420 s of its start"),
        # A restart begins anew.
        ([pod(), pod("ps-0", created=JUST_NOW)], [{"event": "start"}], PASS, "it is starting"),
        # A program of somebody else.
        ([pod()], [], PASS, "all its pods run, and it reports no steps"),
        ([pod()], [{"event": "step", "step": 1}], FAIL, "it has made no step within 420 s"),
    ],
)
def test_progress(pods: list[Any], said: list[Any], result: str, detail: str) -> None:
    check = progress(WANT, RunSeen({}, LIVE, pods, said, []), NOW)
    assert check.result == result, check.detail
    assert detail in check.detail


def test_a_program_of_a_user_has_no_limit_for_a_step() -> None:
    # It may validate, or load data, for as long as it needs.
    users = replace(WANT, train_steps=None)
    for said, detail in (([step(400)], "it has reported step 40"), ([{"event": "start"}], "it is starting")):
        check = progress(users, RunSeen({}, LIVE, [pod()], said, []), NOW)
        assert check.result == PASS and detail in check.detail


def test_a_run_that_was_left_alone_is_shown_as_such() -> None:
    check = progress(WANT, RunSeen({}, LIVE, [pod()], [step(1)], []), NOW, left_alone=True)
    assert check.detail.startswith(
        "m is running (its description differs from the site's, and it was left unchanged): its"
    )


@pytest.mark.parametrize("part", ["pods", "said"])
def test_what_cannot_be_read_is_unknown(part: str) -> None:
    read = {"pods": [pod()], "said": [step(1)], part: Unread("no answer", settles=True)}
    check = progress(WANT, RunSeen({}, LIVE, read["pods"], read["said"], []), NOW)
    assert (check.result, check.detail, check.settles) == (UNKNOWN, "no answer", True)
