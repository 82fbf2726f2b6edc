"""Stopping a run: it saves, is remembered, and goes only where that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer, plural
from tests.unit.training.samples import training
from tests.unit.training.scripted import Ticking
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.trainings.jobset import run_object
from trainyard.trainings.objects import result_record, surroundings
from trainyard.trainings.record import submitted
from trainyard.trainings.run_index import Found
from trainyard.trainings.stop import Stop, cleaner

SPACE = "/api/v1/namespaces/trainings"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
RECORD = f"{SPACE}/configmaps/mnist-result"
CLEANER = f"{SPACE}/pods/mnist-cleaner"
TRAINING = training(logs={"claim": "training"})
EVENTS = ('{"event": "step", "step": 40}', '{"event": "evaluate", "accuracy": 0.5}', '{"event": "step", "step": 60}')
LOG = "".join(f"2026-11-21T12:00:0{number}.5Z {line}\n" for number, line in enumerate(EVENTS))


RAW = {"name": "raw", "mount": "/raw", "path": "/srv/raw"}


def path(obj: dict[str, Any]) -> str:
    meta, version = obj["metadata"], obj["apiVersion"]
    place = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{place}{plural(obj['kind'])}/{meta['name']}"


class Cluster(ApiServer):
    """A run that goes on; its pods end as soon as what runs them is deleted, and the cleaner does its work at once."""

    def __init__(
        self, *, live: bool = True, state: str = "", result: str = "running", cleaned: str = "Succeeded"
    ) -> None:
        made = json.loads(json.dumps(run_object(TRAINING, "20261121T120000Z-0001")))
        made["metadata"]["uid"] = "u"
        labels = {"trainyard.dev/run": "mnist", "trainyard.dev/role": "chief"}
        labels["batch.kubernetes.io/job-completion-index"] = "0"
        meta = {"name": "mnist-chief", "namespace": "trainings", "labels": labels, "uid": "p"}
        meta["creationTimestamp"] = "2026-11-21T12:00:00Z"
        pod = {"metadata": meta, "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}}
        record = result_record(TRAINING, {**submitted(TRAINING, "20261121T120000Z-0001"), "result": result})
        objects: dict[str, Any] = {RECORD: record, f"{SPACE}/pods/mnist-chief/log": lambda _: LOG}
        if live:
            objects |= {f"{SETS}/mnist": {**made, "status": {"terminalState": state}}, f"{SPACE}/pods/mnist-chief": pod}
        around = [*surroundings(training(logs={"node": "n", "path": "/srv"}, worker={"volumes": [RAW]}))]
        other = result_record(training(name="other", logs={"claim": "training"}), {"result": "passed"})
        objects |= {path(obj): json.loads(json.dumps(obj)) for obj in [*around, other]}
        self._cleaned = cleaned
        super().__init__(objects)

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        answer = super().__call__(method, path, query, body, kind)
        if method == "DELETE" and path == f"{SETS}/mnist":
            self.objects.pop(f"{SPACE}/pods/mnist-chief", None)
        if method == "PATCH" and path == CLEANER:
            self.objects[CLEANER]["status"] = {"phase": self._cleaned}
        return answer

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.objects[RECORD]["data"]["result.json"])


def stop(server: ApiServer, name: str = "mnist", log_dir: object = "/nonexistent", **arguments: bool) -> list[str]:
    plan = Stop(Api(server), name, str(log_dir), print).plan(**arguments)
    plan.execute()
    return plan.done


def test_a_run_is_stopped_and_remembered_with_what_it_has_reached(tmp_path: Path) -> None:
    server = Cluster()
    assert stop(server, log_dir=tmp_path) == ["Stop the run mnist after it has saved"]
    assert f"{SETS}/mnist" not in server.objects
    found = server.result
    assert (found["result"], found["steps"], found["accuracy"]) == ("stopped", 60, 0.5)
    assert found["ended_at"]
    # Nobody may have followed it, and its pods are gone.
    assert found["logs"] == [str(tmp_path / "trainings-mnist" / "20261121T120000Z-0001" / "mnist-chief.log")]
    assert Path(found["logs"][0]).read_text() == "".join(f"{line}\n" for line in EVENTS)
    assert server.objects[RECORD]["metadata"]["annotations"]["trainyard.dev/workload"] == "mnist_ps"
    assert stop(server) == []


@pytest.mark.parametrize("said", [0.9, 1.0, 1.6, 7.3])
def test_the_last_line_of_a_pod_counts_that_is_gone_soon_after(said: float) -> None:
    """A pod saves when it is stopped, ends, and is gone half a second later."""
    clock = Ticking()

    class Saving(Cluster):
        def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
            if clock.now >= said:
                last = '2026-11-21T12:00:09.5Z {"event": "checkpoint", "step": 74}\n'
                self.objects[f"{SPACE}/pods/mnist-chief/log"] = lambda _: LOG + last
            pod = self.objects.get(f"{SPACE}/pods/mnist-chief")
            if clock.now >= said + 0.5:
                self.objects.pop(f"{SPACE}/pods/mnist-chief", None)
            answer = super().__call__(method, path, query, body, kind)
            if pod and clock.now < said + 0.5:
                self.objects[f"{SPACE}/pods/mnist-chief"] = pod
            return answer

    server = Saving()
    Stop(Api(server), "mnist", "", print, clock=clock).plan().execute()
    assert server.result["steps"] == 74


def test_what_a_stop_that_was_interrupted_has_left_is_made_good() -> None:
    server = Cluster(live=False)
    assert stop(server) == ["Record that the run mnist has stopped"]
    assert server.result["result"] == "stopped"


@pytest.mark.parametrize(
    ("live", "state", "result"), [(False, "", "passed"), (True, "Completed", "passed"), (True, "Failed", "failed")]
)
def test_a_run_that_has_ended_keeps_its_result(live: bool, state: str, result: str) -> None:
    server = Cluster(live=live, state=state, result=result)
    assert stop(server) == []
    assert server.result["result"] == result


@pytest.mark.parametrize("live", [True, False])
def test_record_and_files_go_where_that_is_asked_for(tmp_path: Path, live: bool) -> None:
    server = Cluster(live=live, result="running" if live else "stopped")
    assert stop(server, log_dir=tmp_path, delete=True)[-1] == "Delete the files and the record of the run mnist"
    left = {key for key in server.objects if not key.endswith("/log")}
    # The namespace, what its runs share, and what is another run's.
    assert {key.rpartition("/")[2] for key in left} == {
        "trainings",
        "lost-pod-collector",
        "default-deny",
        "other-result",
    }
    with pytest.raises(TrainyardError, match="There is no run mnist"):
        stop(server)


@pytest.mark.parametrize(
    ("namespace", "claim", "label", "goes"),
    [
        ("team-a", "mnist-logs", "mnist", False),
        ("trainings", "other-logs", "other", False),
        ("trainings", "mnist-old", "mnist", True),
        ("trainings", "mnist-gone", None, True),
        ("trainings", "../mnist", None, False),
        (None, None, None, False),
    ],
    ids=["other-namespace", "other-run", "own", "claim-gone", "no-name", "no-claim"],
)
def test_only_volumes_for_claims_of_the_run_are_deleted(
    namespace: str | None, claim: str | None, label: str | None, goes: bool
) -> None:
    """A volume's name begins with `trainings-` in every case; only the claim that it is for decides."""
    server = Cluster(live=False, result="stopped")
    labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "mnist"}
    volume = "/api/v1/persistentvolumes/trainings-a-mnist-logs"
    ref = {"claimRef": {"namespace": namespace, "name": claim}} if claim else {}
    server.objects[volume] = {"metadata": {"name": "trainings-a-mnist-logs", "labels": labels}, "spec": ref}
    if label:
        meta = {"name": claim, "namespace": namespace, "labels": {**labels, "trainyard.dev/run": label}}
        server.objects[f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}"] = {"metadata": meta}
    stop(server, delete=True)
    assert (volume not in server.objects) is goes


def test_a_record_stays_as_long_as_its_files_are_there() -> None:
    server = Cluster(live=False, cleaned="Failed")
    with pytest.raises(TrainyardError, match="files of the run mnist could not be deleted"):
        stop(server, delete=True)
    assert RECORD in server.objects and CLEANER not in server.objects


def test_only_the_runs_own_folder_is_deleted_on_a_claim_that_is_shared() -> None:
    found = Found("mnist", "trainings", None, None)
    shared, own = ({"claim": "c", "folder": folder, "image": "i"} for folder in ("/logs/mnist", "/logs"))
    assert cleaner(found, shared)["spec"]["containers"][0]["command"] == ["rm", "-rf", "--", "/logs/mnist"]
    assert cleaner(found, own)["spec"]["containers"][0]["command"][:2] == ["find", "/logs"]


def test_a_name_that_is_no_run_is_refused_with_those_that_are() -> None:
    server = Cluster()
    with pytest.raises(TrainyardError) as refused:
        stop(server, "mnits")
    assert str(refused.value) == "There is no run mnits. Did you mean mnist? There are: mnist, other."
    assert server.writes == []
