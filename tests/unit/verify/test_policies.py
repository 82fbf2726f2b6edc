"""The check of the network policies, against small ones and those that the module `training` makes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.training.samples import training
from trainyard.trainings.objects import network_policies as real_policies
from trainyard.trainings.probe import probe
from trainyard.verify.training_checks import network_policies
from trainyard.verify.verdict import FAIL, PASS

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
    ("policies", "wrong"),
    [
        ([DENY, OWN], ""),
        ([OWN], "no policy denies all ingress by default; no policy denies all egress by default"),
        ([policy("out", {}, None, ["Egress"]), OWN], "no policy denies all ingress by default"),
        ([policy("in", {}, None, ["Ingress"]), OWN], "no policy denies all egress by default"),
        ([policy("in", {}, None), OWN], "no policy denies all egress by default"),
        ([DENY], "no policy selects the pods of m"),
        ([DENY, policy("other", {LABEL: "n"}, [])], "no policy selects the pods of m"),
        ([DENY, OWN, policy("wide", {}, [{"ports": []}])], "policy wide opens ingress to everyone"),
        ([DENY, OWN, policy("wide", {"trainyard.dev/role": "ps"}, [{}])], "policy wide opens ingress to everyone"),
        (
            [DENY, OWN, policy("net", {}, [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])],
            "policy net opens ingress to everyone",
        ),
        (
            [DENY, OWN, policy("pods", {}, [{"from": [{"namespaceSelector": {}}]}])],
            "policy pods opens ingress to everyone",
        ),
        ([DENY, OWN, policy("other", {LABEL: "n"}, [{}])], ""),
        ([DENY, OWN, egress([{"ports": [{"port": 443}]}])], "policy away opens egress to everyone"),
        (
            [DENY, OWN, egress([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])],
            "policy away opens egress to everyone",
        ),
        ([DENY, OWN, egress([{"to": [{"podSelector": {}}]}])], ""),
        # Rules for a direction that the policy is not about do not count.
        ([DENY, OWN, egress([{}], types=["Ingress"])], ""),
    ],
)
def test_network_policies(policies: list[Any], wrong: str) -> None:
    check = network_policies("m", policies)
    assert check.result == (FAIL if wrong else PASS)
    assert not wrong or check.detail == wrong


def test_policies_of_the_training_module_pass() -> None:
    one = training(name="m")
    assert network_policies("m", real_policies(one)).result == PASS
    # While a run is followed, a pod that is not of it probes it, by a policy of its own that is open to everywhere.
    prober = [each for each in probe(one, one.roles["ps"], "a,1", seconds=1) if each["kind"] == "NetworkPolicy"]
    assert prober[0]["spec"]["egress"] == [{}]
    assert network_policies("m", [*real_policies(one), *prober]).result == PASS
