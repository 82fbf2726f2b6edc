"""The checks of the training against small records and policies."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.verify.test_policies import DENY, OWN
from trainyard.verify import training_checks as verify_training
from trainyard.verify.checks import RunView, run_checks
from trainyard.verify.observation import RunSeen, Unread, Wanted
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

FIRST = "20261121T120000Z-0001"
EARLIER = "20261121T110000Z-0000"

RESULT: dict[str, Any] = {
    "name": "m",
    "result": "passed",
    "steps": 2000,
    "train_steps": 2000,
    "accuracy": 0.9366,
    "accuracy_bound": 0.9,
    "roles": {"chief-0": 0, "ps-0": "stopped", "worker-0": 143, "worker-1": 42},
    "isolation": {"stranger_blocked": True, "detail": "5 attempts had no connection"},
    "logs": ["/somewhere"],
}
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def wanted(**changes: Any) -> Wanted:
    return Wanted(**{"name": "m", "namespace": "trainings", "topology": "parameter_server", **changes})


def seen(result: Any, live: Any = None) -> RunSeen:
    return RunSeen(result, live, [], [], [DENY, OWN])


def jobset(state: str = "", attempt: str = FIRST) -> dict[str, Any]:
    conditions = [{"type": state, "status": "True", "reason": "FailedJobs", "message": "job m-chief-0 failed"}]
    meta = {"annotations": {"trainyard.dev/attempt": attempt}, "creationTimestamp": "2026-11-21T11:59:00Z"}
    return {"kind": "JobSet", "metadata": meta, "status": {"conditions": conditions} if state else {}}


@pytest.mark.parametrize(
    ("changes", "bound", "result", "detail"),
    [
        ({}, 0.0, PASS, "m ended after 2000 steps, accuracy 0.9366, bound 0.9"),
        ({}, 0.93, PASS, "m ended after 2000 steps, accuracy 0.9366, bound 0.93"),
        ({}, 0.95, FAIL, "the accuracy is 0.9366, but the bound is 0.95"),
        ({"accuracy": 0.9}, 0.0, PASS, "m ended after 2000 steps, accuracy 0.9000, bound 0.9"),
        ({"accuracy": 0.8999}, 0.0, FAIL, "the accuracy is 0.8999, but the bound is 0.9"),
        ({"accuracy": None}, 0.0, FAIL, "the accuracy is None, but the bound is 0.9"),
        ({"accuracy": float("nan")}, 0.0, FAIL, "the accuracy is nan, but the bound is 0.9"),
        (
            {"result": "no_bound", "accuracy_bound": 0},
            0.0,
            PASS,
            "m ended after 2000 steps, no accuracy bound was set",
        ),
        ({"result": "failed"}, 0.0, FAIL, "m failed at step 2000 of 2000: the reason is not recorded"),
        ({"result": "failed", "steps": 7, "why": "stalled\nmore"}, 0.0, FAIL, "m failed at step 7 of 2000: stalled"),
        ({"result": "stopped", "steps": 60}, 0.0, FAIL, "m was stopped at step 60 of 2000"),
        ({"result": "stopped", "steps": 60, "train_steps": 0}, 0.0, FAIL, "m was stopped at step 60"),
        (
            {"result": "unknown", "why": "the log of its pod m-chief on the node w is not read"},
            0.0,
            UNKNOWN,
            "m has ended, but its result is unknown: the log of its pod m-chief on the node w is not read",
        ),
        ({"result": "strange"}, 0.0, FAIL, "the result of the run is strange"),
        ({"steps": 1999}, 0.0, FAIL, "1999 of 2000 steps were done"),
        ({"steps": 600, "stopped_early": True}, 0.0, PASS, "m ended after 600 steps, accuracy 0.9366, bound 0.9"),
        ({"steps": None, "stopped_early": True}, 0.0, FAIL, "None of 2000 steps were done"),
        ({"steps": None}, 0.0, FAIL, "None of 2000 steps were done"),
        ({"roles": {"chief-0": 1}}, 0.0, FAIL, "chief-0 ended with 1"),
        ({"roles": {"chief-0": "stopped"}}, 0.0, FAIL, "chief-0 ended with stopped"),
        ({"roles": {"chief-0": 42}}, 0.0, FAIL, "chief-0 ended with 42"),
        ({"roles": {"chief-0": 0, "worker-1": 137}}, 0.0, FAIL, "worker-1 ended with 137"),
        ({"roles": {}}, 0.0, FAIL, "the exit of the deciding pod is not recorded"),
    ],
)
def test_training(changes: dict[str, Any], bound: float, result: str, detail: str) -> None:
    check = verify_training.training(wanted(accuracy_bound=0.0), seen({**RESULT, **changes}), bound)
    assert (check.result, check.detail) == (result, detail)


@pytest.mark.parametrize(
    ("own", "site", "result"), [(0.95, 0.0, FAIL), (0.9, 0.95, FAIL), (None, 0.95, PASS), (0.93, 0.92, PASS)]
)
def test_the_highest_bound_counts_for_a_program_that_knows_one(own: float | None, site: float, result: str) -> None:
    assert verify_training.training(wanted(accuracy_bound=own), seen(RESULT), site).result == result


RUNNING = {"result": "running", "attempt": FIRST, "train_steps": 2000}


@pytest.mark.parametrize(
    ("result", "live", "expected", "detail"),
    [
        ({}, None, UNKNOWN, "no result of the training m is recorded"),
        (RUNNING, None, UNKNOWN, "m is no longer running"),
        (RUNNING, jobset("Completed"), UNKNOWN, "m has ended, but its result is not recorded"),
        (RUNNING, jobset("Failed"), FAIL, "m failed while no playbook followed it: FailedJobs: job m-chief-0 failed"),
        ({}, jobset("Failed"), FAIL, "m failed while no playbook followed it"),
        # What is on record is about the attempt before.
        ({**RESULT, "attempt": EARLIER}, jobset("Completed"), UNKNOWN, "its result is not recorded"),
        ({**RESULT, "attempt": FIRST}, jobset("Completed"), PASS, "m ended after 2000 steps"),
        (Unread("no answer", settles=True), None, UNKNOWN, "no answer"),
        (RESULT, Unread("no answer"), UNKNOWN, "no answer"),
    ],
)
def test_a_run_whose_end_nobody_has_recorded(result: Any, live: Any, expected: str, detail: str) -> None:
    check = verify_training.training(wanted(), seen(result, live))
    assert check.result == expected
    assert detail in check.detail


@pytest.mark.parametrize(
    ("evidence", "result"),
    [
        ({"stranger_blocked": True, "detail": "x"}, PASS),
        ({"stranger_blocked": False, "detail": "x"}, FAIL),
        ({"stranger_blocked": None, "detail": "x"}, UNKNOWN),
        ({"stranger_blocked": "perhaps", "detail": "x"}, UNKNOWN),
        ({}, UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_isolation(evidence: Any, result: str) -> None:
    check = verify_training.isolation("m", {"isolation": evidence})
    assert (check.result, check.detail) == (result, "x" if evidence else "no isolation probe of m is recorded")


@pytest.mark.parametrize(
    ("phase", "result"), [("Succeeded", PASS), ("Failed", PASS), ("Running", FAIL), ("Pending", FAIL)]
)
def test_released(phase: str, result: str) -> None:
    check = verify_training.released("m", [{"metadata": {"name": "m-ps-0"}, "status": {"phase": phase}}])
    assert (check.result, check.settles) == (result, result == FAIL)


def names(want: Wanted, run: RunSeen) -> list[str]:
    return [check.name for check in run_checks(RunView(want, run, NOW))]


def test_which_checks_a_training_has() -> None:
    assert names(wanted(), seen(RESULT)) == ["training", "isolation", "network_policies", "released"]
    # Where no port is known to be in use, nothing can be said about it.
    assert "isolation" not in names(wanted(topology="single"), seen({}))
    unknown = {"stranger_blocked": None, "detail": "no port is known to be in use"}
    assert "isolation" not in names(wanted(), seen({**RESULT, "topology": "multi_worker", "isolation": unknown}))
    assert "isolation" in names(wanted(), seen({**RESULT, "topology": "multi_worker"}))
    # What goes on holds its resources by right.
    assert names(wanted(), seen(RUNNING, jobset())) == ["training", "network_policies"]
    assert {check.run for check in run_checks(RunView(wanted(), seen(RESULT), NOW))} == {"m"}


@pytest.mark.parametrize(
    ("live", "steps", "left_alone", "told"),
    [
        (None, 2000, False, ""),
        (jobset("Completed"), 2000, False, ""),
        (jobset(), 2000, False, "the run m is running; its progress was judged"),
        (jobset(), 0, False, "the run m has no end; its progress was judged"),
        (jobset(), 2000, True, "and it was left unchanged; its progress was judged"),
    ],
)
def test_a_run_that_goes_on_is_a_warning(live: Any, steps: int, left_alone: bool, told: str) -> None:
    run = seen({**RUNNING, "train_steps": steps}, live)
    found = verify_training.training_warnings(wanted(), run, left_alone=left_alone)
    assert len(found) == bool(told)
    assert not told or told in found[0]


def test_summary_leaves_the_controllers_paths_out() -> None:
    found = verify_training.summary(wanted(), seen({**RESULT, "word_error_rate": 0.25}))
    assert "logs" not in found
    assert found["word_error_rate"] == 0.25
    assert (found["name"], found["namespace"], found["accuracy"]) == ("m", "trainings", 0.9366)
    assert verify_training.summary(wanted(), seen(Unread("x")))["result"] == "unknown"


def test_summary_of_a_run_that_goes_on_does_not_change_with_its_steps() -> None:
    found = verify_training.summary(wanted(), seen({**RUNNING, "steps": 40}, jobset(attempt=FIRST)), left_alone=True)
    assert found == {
        "name": "m",
        "namespace": "trainings",
        "attempt": FIRST,
        "result": "running",
        "left_alone": True,
    }


def test_what_cannot_be_read_is_unknown() -> None:
    unread = Unread("no answer")
    checks = run_checks(RunView(wanted(), RunSeen(*[unread] * 5), NOW))
    assert checks and {(check.result, check.detail) for check in checks} == {(UNKNOWN, "no answer")}
