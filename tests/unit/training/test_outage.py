"""A control plane that restarts: what goes on meanwhile is not ended by it, and what stays away is reported in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from tests.unit.training.scripted import SETS, SPACE, Cluster, Ticking
from tests.unit.training.test_data_import import JOB, POLICY, described
from tests.unit.training.test_follow import ENDS, STARTS, follow
from tests.unit.training.test_isolation_probe import BLOCKED, POD, USED, Found
from trainyard.kube.api import Api, KubeError
from trainyard.kube.apply import PatientApi
from trainyard.trainings.data_import import DataImport
from trainyard.trainings.probe import IsolationProbe
from trainyard.trainings.stop import Stop
from trainyard.trainings.submit import submit

TRAINING = training(logs={"claim": "training"})
OUTAGES = [(0, "connection refused"), (503, "{}"), (429, "{}")]


class Away:
    """A server that does not answer from `begin` until `end`."""

    def __init__(self, server: ApiServer, clock: Ticking, answer: tuple[int, str] = OUTAGES[0]) -> None:
        self._server, self._clock, self._answer = server, clock, answer
        self.begin = self.end = 0.0

    def leave(self, after: float, seconds: float) -> None:
        self.begin = self._clock.now + after
        self.end = self.begin + seconds

    def __call__(self, *call: Any) -> tuple[int, str]:
        return self._answer if self.begin <= self._clock.now < self.end else self._server(*call)


@pytest.mark.parametrize("answer", OUTAGES)
def test_each_call_has_its_time(answer: tuple[int, str]) -> None:
    clock = Ticking()
    there = Away(ApiServer({f"{SPACE}/pods/a": {"metadata": {"name": "a"}}}), clock, answer)
    api = PatientApi(Api(there), clock)
    there.leave(0, 60)
    assert api.get("v1", "Pod", "a", "trainings")
    assert 60 <= clock.now <= 62
    there.leave(0, 200)
    with pytest.raises(KubeError):
        api.get("v1", "Pod", "a", "trainings")
    assert 145 <= clock.now <= 155


def test_what_is_refused_is_refused_at_once() -> None:
    clock = Ticking()
    server = ApiServer({f"{SPACE}/pods/a": 403})
    with pytest.raises(KubeError, match="403"):
        PatientApi(Api(server), clock).get("v1", "Pod", "a", "trainings")
    assert clock.now == 0


@pytest.mark.parametrize("after", [0, 5])
def test_a_stop_goes_on_after_it(tmp_path: Path, after: float) -> None:
    cluster = Cluster(TRAINING, STARTS, grace=20.0)
    cluster.clock.sleep(6)
    there = Away(cluster, cluster.clock)
    plan = Stop(Api(there), "mnist", str(tmp_path), lambda _: None, cluster.clock).plan()
    there.leave(after, 60)
    plan.execute()
    assert cluster.pods == [] and f"{SETS}/mnist" not in cluster.objects
    assert cluster.clock.now >= 60


def test_a_submission_goes_on_after_it(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [*STARTS, (6, "end", "Failed")], grace=20.0)
    cluster.clock.sleep(7)
    there = Away(cluster, cluster.clock)
    live = {**cluster.objects[f"{SETS}/mnist"], "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    there.leave(3, 60)
    attempt = submit(Api(there), TRAINING, live, "auto", print, log_dir=str(tmp_path), clock=cluster.clock)
    assert cluster.record["attempt"] == attempt != "20261121T120000Z-0001"


class Slow(ApiServer):
    """An import that is done a minute after its Job was made."""

    def __init__(self, clock: Ticking) -> None:
        super().__init__()
        self._clock = clock

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if JOB in self.objects and self._clock.now > 60:
            self.objects[JOB]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        return super().__call__(method, path, query, body, kind)


@pytest.mark.parametrize("after", [0, 3])
def test_an_import_goes_on_after_it(after: float) -> None:
    clock = Ticking()
    server = Slow(clock)
    there = Away(server, clock)
    there.leave(after, 50)
    DataImport(Api(there), *described(), lambda _: None, clock).bring()
    assert clock.now > 60
    assert not {JOB, POLICY} & server.objects.keys()


def stranger(there: Any, clock: Ticking) -> IsolationProbe:
    return IsolationProbe(Api(there), TRAINING, control="kubernetes.default.svc,443", enabled=True, clock=clock)


def test_the_stranger_is_asked_again_after_it_and_goes() -> None:
    clock = Ticking()
    server = Found(*BLOCKED)
    there = Away(server, clock)
    with stranger(there, clock) as one:
        there.leave(0, 60)
        one.watch(USED)
        assert clock.now == 0, "the training is watched meanwhile"
        assert one.evidence(USED)["stranger_blocked"] is True
    assert 60 <= clock.now <= 62
    assert not server.there


@pytest.mark.parametrize("status", [500, 503])
def test_a_stranger_whose_node_does_not_answer_leaves_the_question_open(status: int) -> None:
    clock = Ticking()
    server = Found(*BLOCKED)
    server.objects[f"{POD}/log"] = status
    with stranger(server, clock) as one:
        one.watch(USED)
        found = one.evidence(USED)
    assert found["stranger_blocked"] is None and "its log cannot be read" in found["detail"]
    assert json.dumps(found)
    assert not server.there


@pytest.mark.parametrize(("begin", "seconds"), [(0, 19), (10, 19), (10, 60), (29, 60)])
def test_an_api_server_that_restarts(tmp_path: Path, begin: int, seconds: int) -> None:
    result, _, _ = follow(tmp_path, sorted([*STARTS, *ENDS, (begin, "away", seconds)], key=lambda each: each[0]))
    assert result["result"] == "passed"


def test_an_api_server_that_is_away_for_longer_than_it_takes_to_restart(tmp_path: Path) -> None:
    error, cluster, _ = follow(tmp_path, [*STARTS, (10, "away", 100), *ENDS])
    assert isinstance(error, KubeError) and "does not answer" in error.message
    assert 100 <= cluster.clock.now <= 105
    assert cluster.writes == [], "the run goes on, and nobody has said otherwise"
