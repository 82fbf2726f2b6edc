"""Objects of users with the names of a run's objects are refused, and stay as they are."""

from __future__ import annotations

import copy

import pytest

from tests.unit.training.test_plan import JOBSET, RECORD, Site, training
from trainyard.core.errors import TrainyardError
from trainyard.trainings.foreign_objects import guard, refuse_foreign
from trainyard.trainings.jobset import run_object
from trainyard.trainings.names import API_VERSIONS, MANAGED
from trainyard.trainings.objects import result_record, surroundings

SPACE = "namespaces/trainings"
POLICY = f"/apis/networking.k8s.io/v1/{SPACE}/networkpolicies/mnist"
DENY = f"/apis/networking.k8s.io/v1/{SPACE}/networkpolicies/default-deny"
BINDING = f"/apis/rbac.authorization.k8s.io/v1/{SPACE}/rolebindings/lost-pod-collector"
CLAIM = f"/api/v1/{SPACE}/persistentvolumeclaims/mnist-logs"


@pytest.mark.parametrize("path", [POLICY, DENY, CLAIM])
def test_a_supporting_object_of_a_user_is_refused_and_unchanged(path: str) -> None:
    site = Site("worker1")
    site.objects[path]["metadata"]["labels"] = {"app": "mine"}
    before = copy.deepcopy(site.objects)
    with pytest.raises(TrainyardError, match=f"{path.rsplit('/', 1)[1]} exists, but was not created by trainyard"):
        site.run(training("worker1")).plan()
    assert site.objects == before


@pytest.mark.parametrize("state", [{}, {"terminalState": "Completed"}])
@pytest.mark.parametrize("kind", [*API_VERSIONS, "ConfigMap"])
def test_a_workload_of_a_user_is_refused_whatever_its_state(kind: str, state: dict[str, str]) -> None:
    path = RECORD if kind == "ConfigMap" else f"/apis/{API_VERSIONS[kind]}/{SPACE}/{kind.lower()}s/mnist"
    site = Site("worker1")
    site.objects[path] = {"kind": kind, "metadata": {"name": path.rsplit("/", 1)[1], "labels": {}}, "status": state}
    with pytest.raises(TrainyardError, match=f"{kind} .*not created by trainyard") as caught:
        site.run(training("worker1")).plan(may_end=True, restart=True)
    assert caught.value.remedy.startswith("Set another name (run)")
    assert site.writes == []


def test_the_binding_of_a_user_is_refused_when_the_run_itself_is_left_unchanged() -> None:
    site = Site("worker1", live="another")
    site.objects[BINDING]["metadata"]["labels"] = {}
    with pytest.raises(TrainyardError, match="RoleBinding trainings/lost-pod-collector exists"):
        site.run(training("worker1", port=3333)).plan()


def test_objects_of_a_user_stay_when_the_run_is_deleted() -> None:
    site = Site("worker1", live="another")
    site.objects[POLICY]["metadata"]["labels"] = {"app": "mine"}
    steps = [step.what for step in site.run(training("worker1")).remove_plan().steps]
    assert "Delete JobSet mnist" in steps and "Delete PersistentVolumeClaim mnist-logs" in steps
    assert "Delete NetworkPolicy mnist" not in steps
    site.objects[JOBSET]["metadata"]["labels"] = {}
    assert "Delete JobSet mnist" not in [step.what for step in site.run(training("worker1")).remove_plan().steps]


def test_all_are_named_at_once_and_a_namespace_may_be_a_users() -> None:
    theirs = {"kind": "Job", "metadata": {"name": "a"}}
    ours = {"kind": "Job", "metadata": {"name": "b", "labels": MANAGED}}
    other = {"kind": "Job", "metadata": {"name": "c", "labels": {"app.kubernetes.io/managed-by": "Helm"}}}
    with pytest.raises(TrainyardError, match=r"^Job a, Job c exist, but were not"):
        refuse_foreign(other, None, ours, theirs)
    guard([{"kind": "Namespace", "metadata": {"name": "trainings"}}, ours])


@pytest.mark.parametrize("logs", [{"node": "worker1", "path": "/srv/mnist"}, {"claim": "training"}, {}])
def test_each_object_that_a_run_creates_passes(logs: dict[str, str]) -> None:
    one = training("", logs=logs, tensorboard="mirror:8443/tensorboard:1")
    guard(surroundings(one))
    refuse_foreign(run_object(one, "20261129T120000Z-0000"), result_record(one, {}))
