"""Another attempt at a run from its object or its record, of which nothing foreign is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.training.samples import training
from trainyard.core.errors import TrainyardError
from trainyard.trainings.again import another, manifest
from trainyard.trainings.jobset import run_object

Change = Callable[[Any], object]


def kept(**options: Any) -> Any:
    return json.loads(json.dumps(manifest(run_object(training(**options), "20261121T120000Z-0001"))))


def pod_of(obj: Any) -> Any:
    return obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def container_of(obj: Any) -> Any:
    return pod_of(obj)["containers"][0]


@pytest.mark.parametrize("resume", ["auto", "fresh"])
def test_another_attempt_is_what_a_submission_makes(resume: str) -> None:
    made = another(kept(), "trainings", "mnist", "second", resume=resume)
    assert made == json.loads(json.dumps(run_object(training(), "second", resume)))


def test_what_the_api_server_adds_to_a_job_is_left_out() -> None:
    obj = kept()
    job = obj["spec"]["replicatedJobs"][0]["template"]["spec"]
    labels = job["template"]["metadata"]["labels"]
    single = {**obj, "kind": "Job", "apiVersion": "batch/v1", "spec": {**job, "suspend": True, "selector": {"a": "b"}}}
    labels["controller-uid"] = "x"
    made = another(single, "trainings", "mnist", "second", resume="auto")
    assert not {"suspend", "selector"} & made["spec"].keys()
    assert made["spec"]["template"]["metadata"]["labels"].keys() == {"trainyard.dev/run", "trainyard.dev/role"}


FORGED: dict[str, Change] = {
    "kind": lambda it: it.update(kind="Secret", apiVersion="v1"),
    "version": lambda it: it.update(apiVersion="batch/v1"),
    "service": lambda it: it.update(kind="Deployment", apiVersion="apps/v1"),
    "name": lambda it: it["metadata"].update(name="other"),
    "namespace": lambda it: it["metadata"].update(namespace="kube-system"),
    "account": lambda it: pod_of(it).update(serviceAccountName="admin"),
    "token": lambda it: pod_of(it).update(automountServiceAccountToken=True),
    "host network": lambda it: pod_of(it).update(hostNetwork=True),
    "node": lambda it: pod_of(it).update(nodeName="controller1"),
    "init": lambda it: pod_of(it).update(initContainers=[{}]),
    "second container": lambda it: pod_of(it)["containers"].append({"name": "x"}),
    "root": lambda it: pod_of(it)["securityContext"].update(runAsUser=0),
    "privileged": lambda it: container_of(it)["securityContext"].update(privileged=True),
    "lifecycle": lambda it: container_of(it).update(lifecycle={}),
    "secret volume": lambda it: pod_of(it)["volumes"].append({"name": "x", "secret": {"secretName": "token"}}),
    "host path": lambda it: pod_of(it)["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    "projected": lambda it: pod_of(it)["volumes"].append({"name": "x", "projected": {}}),
    "all of a secret": lambda it: container_of(it).update(envFrom=[{}]),
    "no spec": lambda it: it.pop("spec"),
    "text": lambda it: it.update(spec="x"),
    "list": lambda it: it["spec"].update(replicatedJobs={"a": 1}),
    "controller": lambda it: it["spec"].update(managedBy="evil.example/x"),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_record_is_refused(how: str) -> None:
    obj = kept()
    FORGED[how](obj)
    with pytest.raises(TrainyardError, match="is invalid"):
        another(obj, "trainings", "mnist", "second", resume="auto")


@pytest.mark.parametrize("obj", [None, [], "x", 1, {}])
def test_what_is_no_manifest_is_refused(obj: object) -> None:
    with pytest.raises(TrainyardError):
        another(obj, "trainings", "mnist", "second", resume="auto")
