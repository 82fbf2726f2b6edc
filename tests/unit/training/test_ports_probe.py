"""The probe of ports of a user's run: who counts, what decides, and pods that cannot start."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from tests.unit.training.scripted import Ticking
from trainyard.kube.api import Api
from trainyard.trainings.names import NAME_LABEL, PROBE_LABEL
from trainyard.trainings.ports_probe import Judge, is_tried, probe_pods, probe_ports

RUN = training(topology="multi_worker", flags={})
ALL = (30_000, 40_000)
PODS = "/api/v1/namespaces/trainings/pods"


def attempts(*outcomes: tuple[str, int, str]) -> list[dict[str, Any]]:
    return [{"target": target, "port": port, "outcome": outcome} for target, port, outcome in outcomes]


MEMBER = attempts(*(("target", port, "connected") for port in ALL))
CONTROL = attempts(("control", 443, "connected"))
ROUND = attempts(*(("target", port, "timeout") for port in ALL))


def test_attempts_count_after_a_pod_of_the_run_has_connected() -> None:
    judge = Judge(ALL)
    assert judge.look(MEMBER[:1], CONTROL + 5 * ROUND)["stranger_blocked"] is None
    # These nine rounds may have been before the policy of the target's node was there.
    assert judge.look(MEMBER, CONTROL + 9 * ROUND)["stranger_blocked"] is None
    assert judge.look(MEMBER, CONTROL + 11 * ROUND)["stranger_blocked"] is None
    found = judge.look(MEMBER, CONTROL + 12 * ROUND)
    assert found["stranger_blocked"] is True
    assert "30000 and 40000" in found["detail"]


@pytest.mark.parametrize("before", [0, 20])
def test_one_connection_from_outside_is_enough(before: int) -> None:
    reached = attempts(("target", 40_000, "connected"))
    found = Judge(ALL).look([], CONTROL + before * ROUND + reached)
    assert found == {
        "stranger_blocked": False, "detail": "a pod outside the run connected to port 40000 of a pod of the run"
    }  # fmt: skip


def test_a_probe_that_reaches_nothing_proves_nothing() -> None:
    judge = Judge(ALL)
    for rounds in (1, 9, 20):
        assert judge.look(MEMBER, rounds * ROUND)["stranger_blocked"] is None
    unresolved = attempts(*(("target", port, "unresolved") for port in ALL))
    for rounds in (1, 9, 20):
        assert judge.look(MEMBER, CONTROL + rounds * unresolved)["stranger_blocked"] is None


def test_lines_of_other_ports_or_forms_are_no_attempts() -> None:
    judge = Judge(ALL)
    strange = [{"target": "target", "port": port, "outcome": "connected"} for port in (22, True, "30000", None, [1])]
    assert judge.look(MEMBER, CONTROL + strange)["stranger_blocked"] is None


@pytest.mark.parametrize(
    ("changes", "tried"),
    [
        ({"topology": "multi_worker", "flags": {}}, True),
        ({"topology": "multi_worker", "flags": {}, "worker": {"replicas": 1}, "ps": {"replicas": 0}}, False),
        ({}, False),
        ({"topology": "single"}, False),
        ({"topology": "service"}, False),
    ],
)
def test_which_runs_are_tried(changes: dict[str, Any], tried: bool) -> None:
    run = training(**changes)
    assert is_tried(run) is tried
    assert bool(probe_pods(run)) is tried


def test_who_is_inside_and_who_is_not() -> None:
    target, policy, member, outsider = probe_pods(RUN, "a,443", "10.244.1.9", ALL)
    assert [NAME_LABEL in pod["metadata"]["labels"] for pod in (target, member, outsider)] == [True, True, False]
    # Followers and verdicts take no pod with this label for one of the run.
    assert all(PROBE_LABEL in pod["metadata"]["labels"] for pod in (target, member, outsider))
    assert policy["spec"]["podSelector"]["matchLabels"] == {PROBE_LABEL: outsider["metadata"]["labels"][PROBE_LABEL]}
    assert target["metadata"]["labels"][PROBE_LABEL] != outsider["metadata"]["labels"][PROBE_LABEL]
    assert target["spec"]["containers"][0]["args"] == ["120", "30000", "40000"]
    wanted = ["120", "control,a,443", "target,10.244.1.9,30000", "target,10.244.1.9,40000"]
    assert member["spec"]["containers"][0]["args"] == outsider["spec"]["containers"][0]["args"] == wanted


class Cluster(ApiServer):
    """A cluster whose pods run at once, or end; the outsider makes another round at each reading of its log."""

    def __init__(self, state: dict[str, Any], outcome: str = "timeout") -> None:
        super().__init__({})
        self._state, self._outcome, self._rounds = state, outcome, 0

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if path.endswith("/log"):
            pod = self.objects[path.removesuffix("/log")]
            tries = [each.split(",") for each in pod["spec"]["containers"][0]["args"][1:]]
            member = path.endswith("-member/log")
            lines = [
                {"target": name, "port": int(port), "outcome": self._outcome if name == "target" else "connected"}
                for name, _, port in tries
            ]
            if member:
                return 200, "\n".join(json.dumps({**each, "outcome": "connected"}) for each in lines)
            self._rounds += 1
            return 200, "\n".join(json.dumps(each) for each in self._rounds * lines)
        answer = super().__call__(method, path, query, body, kind)
        for name, pod in self.objects.items():
            if name.startswith(f"{PODS}/"):
                pod["status"] = {"phase": "Running", "podIP": "10.244.1.9", **self._state}
        return answer


RUNS = {"containerStatuses": [{"state": {"running": {}}}]}


@pytest.mark.parametrize(("outcome", "blocked"), [("timeout", True), ("refused", True), ("connected", False)])
def test_a_probe_from_its_pods_to_its_evidence(outcome: str, blocked: bool) -> None:
    cluster = Cluster(RUNS, outcome)
    found = probe_ports(Api(cluster), RUN, "a,443", Ticking())
    assert found["stranger_blocked"] is blocked, found
    assert not [path for path in cluster.objects if path.startswith(f"{PODS}/")], "its pods are removed"


def test_an_image_without_python_is_no_failure_and_no_wait() -> None:
    clock = Ticking()
    ended = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 128}}}]}
    found = probe_ports(Api(Cluster(ended)), RUN, "a,443", clock)
    assert found["stranger_blocked"] is None and "did not start in the image of the run" in found["detail"]
    assert clock.now < 5


def test_pods_that_find_no_place_are_no_failure() -> None:
    found = probe_ports(Api(Cluster({"phase": "Pending"})), RUN, "a,443", Ticking())
    assert found["stranger_blocked"] is None and "mnist-target" in found["detail"]
