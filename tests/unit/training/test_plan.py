"""What a run plans on a cluster in which something of it stands already."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer, plural
from tests.unit.training import samples
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings.jobset import spec_hash
from trainyard.trainings.model import Training
from trainyard.trainings.names import HASH_ANNOTATION, MANAGED
from trainyard.trainings.objects import surroundings
from trainyard.trainings.probe import probe_objects
from trainyard.trainings.run import Run, Settings

JOBSET = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/mnist"
RECORD = "/api/v1/namespaces/trainings/configmaps/mnist-result"


def training(node: str, **more: Any) -> Training:
    return samples.training(**{"logs": {"node": node, "path": "/srv/mnist"}, **more})


def path(obj: dict[str, Any]) -> str:
    meta, version = obj["metadata"], obj["apiVersion"]
    place = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{place}{plural(obj['kind'])}/{meta['name']}"


class Site(ApiServer):
    """A cluster of these nodes, with what stands round a run whose files are on `worker1`."""

    def __init__(self, *nodes: str, live: str = "", recorded: str = "", result: dict[str, Any] | None = None) -> None:
        around = {path(obj): json.loads(json.dumps(obj)) for obj in surroundings(training("worker1"))}
        super().__init__({**around, **{f"/api/v1/nodes/{name}": {"metadata": {"name": name}} for name in nodes}})
        if live:
            self.objects[JOBSET] = {"metadata": {"labels": MANAGED, "annotations": {HASH_ANNOTATION: live}}}
        if recorded:
            meta = {"labels": MANAGED, "annotations": {HASH_ANNOTATION: recorded}}
            self.objects[RECORD] = {
                "metadata": meta,
                "data": {"result.json": json.dumps(result or {"result": "passed"})},
            }

    def run(self, wanted: Training) -> Run:
        return Run(Api(self), wanted, Settings(log_dir="/tmp", isolation_probe=False), Progress(None))


def test_a_run_goes_on_where_its_files_are() -> None:
    plan = Site("worker1", "worker2").run(training("worker2")).plan()
    assert [step.what for step in plan.steps] == ["Run training mnist: 200 steps, 1 chief, 1 ps, 2 worker"]


def test_files_on_a_node_that_is_gone_are_named() -> None:
    with pytest.raises(TrainyardError, match="are on worker1") as refused:
        Site("worker2").run(training("worker2")).plan()
    assert "worker2" in refused.value.remedy


def test_the_record_of_a_run_needs_no_node() -> None:
    done = spec_hash(training("worker1"))
    assert Site("worker2", recorded=done).run(training("worker2")).plan().steps == []


def test_another_description_of_a_run_that_goes_on_is_left_alone_whole() -> None:
    site = Site("worker1", live="another")
    run = site.run(training("worker1", port=3333))
    assert run.plan().steps == []
    assert "left unchanged" in run.left_alone
    assert site.writes == []
    # Only what lets it survive the loss of a node is brought up to date.
    del site.objects["/apis/rbac.authorization.k8s.io/v1/namespaces/trainings/rolebindings/lost-pod-collector"]
    assert [step.what for step in run.plan().steps] == ["Create RoleBinding trainings/lost-pod-collector"]
    steps = [step.what for step in site.run(training("worker1", port=3333)).plan(may_end=True).steps]
    assert steps[-1].startswith("Run training mnist")


def test_what_a_probe_has_left_is_deleted_with_the_run() -> None:
    site = Site("worker1")
    target = probe_objects(training("worker1"))[-1]
    site.objects[path(target)] = target
    steps = [step.what for step in site.run(training("worker1")).remove_plan().steps]
    assert "Delete Pod mnist-target" in steps


def test_a_volume_from_before_the_shared_storage_is_deleted_with_the_run() -> None:
    shared = training("", logs={"claim": "training"})
    steps = [step.what for step in Site("worker1").run(shared).remove_plan().steps]
    assert "Delete PersistentVolume trainings-mnist-logs" in steps
