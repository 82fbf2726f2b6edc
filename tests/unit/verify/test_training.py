"""The checks of the training against small records and policies."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.trainyard.training.objects import network_policies as real_policies
from ansible.module_utils.trainyard.verify import training as verify_training
from ansible.module_utils.trainyard.verify.reading import Observation, Unread
from ansible.module_utils.trainyard.verify.verdict import FAIL, PASS, UNKNOWN

from tests.unit.training.samples import training

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
LABEL = "trainyard.dev/run"


def policy(
    name: str, labels: dict[str, str], ingress: list[Any] | None, types: list[str] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"podSelector": {"matchLabels": labels} if labels else {}}
    spec |= {"ingress": ingress} if ingress is not None else {}
    spec |= {"policyTypes": types} if types else {}
    return {"metadata": {"name": name}, "spec": spec}


def egress(rules: list[Any], types: list[str] | None = None) -> dict[str, Any]:
    one = policy("away", {LABEL: "m"}, None, types)
    one["spec"]["egress"] = rules
    return one


DENY = policy("deny", {}, None, ["Ingress", "Egress"])
OWN = policy("own", {LABEL: "m"}, [{"from": [{"podSelector": {"matchLabels": {LABEL: "m"}}}]}])


@pytest.mark.parametrize(
    ("changes", "bound", "result", "detail"),
    [
        ({}, 0.0, PASS, "m ended after 2000 steps, accuracy 0.9366, bound 0.9"),
        ({}, 0.93, PASS, "m ended after 2000 steps, accuracy 0.9366, bound 0.93"),
        ({}, 0.95, FAIL, "the accuracy is 0.9366, the bound 0.95"),
        ({"result": "running", "roles": {}}, 0.0, UNKNOWN, "the training m goes on"),
        ({"accuracy": 0.9}, 0.0, PASS, "m ended after 2000 steps, accuracy 0.9000, bound 0.9"),
        ({"accuracy": 0.8999}, 0.0, FAIL, "the accuracy is 0.8999, the bound 0.9"),
        ({"accuracy": None}, 0.0, FAIL, "the accuracy is None, the bound 0.9"),
        ({"accuracy": float("nan")}, 0.0, FAIL, "the accuracy is nan, the bound 0.9"),
        (
            {"result": "no_bound", "accuracy_bound": 0},
            0.0,
            PASS,
            "m ended after 2000 steps, no accuracy bound was asked for",
        ),
        ({"result": "failed"}, 0.0, FAIL, "the run says failed"),
        ({"steps": 1999}, 0.0, FAIL, "1999 of 2000 steps were done"),
        ({"steps": 600, "stopped_early": True}, 0.0, PASS, "m ended after 600 steps, accuracy 0.9366, bound 0.9"),
        ({"steps": None, "stopped_early": True}, 0.0, FAIL, "None of 2000 steps were done"),
        ({"steps": None}, 0.0, FAIL, "None of 2000 steps were done"),
        ({"roles": {"chief-0": 1}}, 0.0, FAIL, "chief-0 ended with 1"),
        ({"roles": {"chief-0": "stopped"}}, 0.0, FAIL, "chief-0 ended with stopped"),
        ({"roles": {"chief-0": 42}}, 0.0, FAIL, "chief-0 ended with 42"),
        ({"roles": {"chief-0": 0, "worker-1": 137}}, 0.0, FAIL, "worker-1 ended with 137"),
        ({"roles": {}}, 0.0, FAIL, "the exit that decides is not recorded"),
    ],
)
def test_training(changes: dict[str, Any], bound: float, result: str, detail: str) -> None:
    check = verify_training.training("m", bound, {**RESULT, **changes})
    assert (check.result, check.detail) == (result, detail)


def test_no_result_is_unknown() -> None:
    check = verify_training.training("m", 0.9, {})
    assert (check.result, check.detail) == (UNKNOWN, "no result of the training m is recorded")


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
    assert (check.result, check.detail) == (result, "x" if evidence else "no attempt of a foreign pod on m is recorded")


@pytest.mark.parametrize(
    ("policies", "wrong"),
    [
        ([DENY, OWN], ""),
        ([OWN], "no policy denies all ingress by default; no policy denies all egress by default"),
        ([policy("out", {}, None, ["Egress"]), OWN], "no policy denies all ingress by default"),
        ([policy("in", {}, None, ["Ingress"]), OWN], "no policy denies all egress by default"),
        ([policy("in", {}, None), OWN], "no policy denies all egress by default"),
        ([DENY], "no policy is there for the pods of m"),
        ([DENY, policy("other", {LABEL: "n"}, [])], "no policy is there for the pods of m"),
        ([DENY, OWN, policy("wide", {}, [{"ports": []}])], "policy wide has ingress open to everybody"),
        ([DENY, OWN, policy("wide", {"trainyard.dev/role": "ps"}, [{}])], "policy wide has ingress open to everybody"),
        (
            [DENY, OWN, policy("net", {}, [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])],
            "policy net has ingress open to everybody",
        ),
        (
            [DENY, OWN, policy("pods", {}, [{"from": [{"namespaceSelector": {}}]}])],
            "policy pods has ingress open to everybody",
        ),
        ([DENY, OWN, policy("other", {LABEL: "n"}, [{}])], ""),
        ([DENY, OWN, egress([{"ports": [{"port": 443}]}])], "policy away has egress open to everybody"),
        (
            [DENY, OWN, egress([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])],
            "policy away has egress open to everybody",
        ),
        ([DENY, OWN, egress([{"to": [{"podSelector": {}}]}])], ""),
        # Rules for a direction that the policy is not about do not count.
        ([DENY, OWN, egress([{}], types=["Ingress"])], ""),
    ],
)
def test_network_policies(policies: list[Any], wrong: str) -> None:
    check = verify_training.network_policies("m", policies)
    assert check.result == (FAIL if wrong else PASS)
    assert not wrong or check.detail == wrong


def test_policies_of_the_training_module_pass() -> None:
    assert verify_training.network_policies("m", real_policies(training(name="m"))).result == PASS


@pytest.mark.parametrize(
    ("phase", "result"), [("Succeeded", PASS), ("Failed", PASS), ("Running", FAIL), ("Pending", FAIL)]
)
def test_released(phase: str, result: str) -> None:
    check = verify_training.released("m", [{"metadata": {"name": "m-ps-0"}, "status": {"phase": phase}}])
    assert (check.result, check.settles) == (result, result == FAIL)


def test_summary_leaves_the_controllers_paths_out() -> None:
    assert "logs" not in verify_training.summary(RESULT)
    assert verify_training.summary(RESULT)["accuracy"] == 0.9366
    assert verify_training.summary(Unread("x")) == {}


def test_what_cannot_be_read_is_unknown() -> None:
    unread = Unread("no answer")
    checks = verify_training.training_checks("m", 0.9, Observation(unread, unread, unread, unread, unread, unread))
    assert [(check.result, check.detail) for check in checks] == [(UNKNOWN, "no answer")] * 4
