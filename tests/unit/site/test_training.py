"""One refusal a row: trainings that could never start, or never end well."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.model import Setting, Site
from trainyard.site.trainings import TRAINING_RULES

LIMITS = {"cpu": "1", "memory": "1Gi"}
CATALOGUE = {
    "mnist_ps": {
        "image": {"repository": "tensorflow", "artefact": "image_tensorflow"},
        "training": {
            "name": "mnist",
            "namespace": "trainings",
            "command": ["python"],
            "train_steps": 200,
            "accuracy_bound": 0,
            "chief": {"limits": LIMITS},
            "ps": {"replicas": 1, "limits": LIMITS},
            "worker": {"replicas": 2, "limits": LIMITS},
            "strategy": "parameter_server",
            "keras": "none",
            "loop": "custom",
        },
    }
}


def refusals(training: dict[str, Any], **others: str) -> list[str]:
    settings = [
        Setting("workloads_training", {"workload": "mnist_ps", **training}),
        *(Setting(name, value) for name, value in others.items()),
    ]
    namespaces = frozenset({"kube-system", "jobset-system"})
    site = Site(settings=settings, catalogue=CATALOGUE, versions={"image_tensorflow": "2.21.0"}, namespaces=namespaces)
    return [str(problem) for rule in TRAINING_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    ("training", "key", "fault", "remedy"),
    [
        ({"workload": "mnits"}, '.workload is "mnits"', "not in the catalogue", "Use one of: mnist_ps."),
        ({"chief": {"replicas": 0}}, ".chief.replicas is 0", "exactly one chief", "Use 1."),
        ({"chief": {"replicas": 2}}, ".chief.replicas is 2", "exactly one chief", "Use 1."),
        ({"ps": {"replicas": 0}}, ".ps.replicas is 0", "parameter_server needs at least one ps", "Use 1 or more."),
        ({"worker": {"replicas": 0}}, ".worker.replicas is 0", "needs at least one worker", "Use 1 or more."),
        ({"train_steps": -1}, ".train_steps is -1", "not a value", "0 = until stopped"),
        ({"batch_size": 0}, ".batch_size is 0", "not a value", "Write a whole number from 1."),
        ({"learning_rate": 0}, ".learning_rate is 0", "not a value", "Write a number above 0"),
        ({"learning_rate": -0.1}, ".learning_rate is -0.1", "not a value", "Write a number above 0"),
        ({"accuracy_bound": 1.2}, ".accuracy_bound is 1.2", "not a value", "Write a fraction from 0"),
        ({"accuracy_bound": 90}, ".accuracy_bound is 90", "not a value", "Write a fraction from 0"),
        ({"accuracy_bound": 0.9, "train_steps": 0}, ".accuracy_bound is 0.9", "without an end", "Set a number of"),
        ({"worker": {"limits": {"memory": ""}}}, ".worker.limits is", "memory is missing", 'for example "1Gi"'),
        ({"chief": {"limits": {"cpu": None}}}, ".chief.limits is", "cpu is missing", 'Add cpu, for example "1".'),
        ({"ps": {"limits": {"memory": "1 GB"}}}, "ps.limits.memory is '1 GB'", "must be a quantity", "Set it in"),
        ({"tran_steps": 3}, "tran_steps is 3", "known keys are", "Did you mean train_steps?"),
        ({"port": 80}, "workloads_training.port is 80", "a port from 1024", "Set it in workloads_training."),
        (
            {"worker": {"limits": {"nvidia.com/gpu": 1}}},
            ".worker.limits.nvidia.com/gpu is 1",
            "no host of this site has a GPU",
            "Set nvidia_driver_version",
        ),
        (
            {"keras": "keras3", "loop": "fit"},
            'is "strategy parameter_server, keras keras3, loop fit',
            "model.fit of Keras 3 fails at its start",
            "The nearest that works: loop fit with keras tf_keras.",
        ),
        (
            {"keras": "keras3"},
            'is "strategy parameter_server, keras keras3, loop custom',
            "loses steps under a coordinator",
            "The nearest that works: loop custom with keras tf_keras or none.",
        ),
        (
            {"strategy": "multi_worker_mirrored", "keras": "keras3", "loop": "fit"},
            'is "strategy multi_worker_mirrored, keras keras3, loop fit',
            "cannot convert PerReplica values",
            "The nearest that works: loop fit with keras tf_keras, or loop custom with keras3.",
        ),
        ({"strategy": "mirrored"}, 'is "strategy mirrored', "is unknown", "Use one of parameter_server"),
        ({"python": "3.14"}, "python 3.14", "no wheel for python 3.14", "Use python 3.10 to 3.13."),
        (
            {"image": "registry.example.org/a/tensorflow:2.20.0", "python": "3.14"},
            "tensorflow 2.20.0",
            "no wheel for python 3.14",
            "Use python 3.9 to 3.13.",
        ),
    ],
)
def test_refused(training: dict[str, Any], key: str, fault: str, remedy: str) -> None:
    (found,) = refusals(training)
    assert found.startswith("variable workloads_training")
    assert key in found
    assert fault in found
    assert remedy in found


@pytest.mark.parametrize("driver", ["470", "470.256.02", "525.60.11"])
def test_old_driver_refused(driver: str) -> None:
    (found,) = refusals({}, nvidia_driver_version=driver)
    assert f"driver {driver} is too old for CUDA 12. Use 525.60.13 or newer." in found


def test_all_faults_are_reported_together() -> None:
    found = refusals({"train_steps": -1, "batch_size": 0, "ps": {"replicas": 0}, "keras": "keras3"})
    assert len(found) == 4


@pytest.mark.parametrize(
    ("training", "others"),
    [
        ({}, {}),
        ({"train_steps": 0}, {}),
        ({"train_steps": 2000, "accuracy_bound": 0.9, "batch_size": 20, "learning_rate": 0.001}, {}),
        # Values that are not given come from the catalogue, also inside the limits.
        ({"worker": {"limits": {"cpu": "500m"}}}, {}),
        ({"worker": {"limits": {"nvidia.com/gpu": 1}}}, {"nvidia_driver_version": "570.86.15"}),
        ({"image": "example/other:1.0", "python": "3.14"}, {}),
        ({"keras": "tf_keras", "loop": "fit"}, {}),
    ],
)
def test_accepted(training: dict[str, Any], others: dict[str, str]) -> None:
    assert refusals(training, **others) == []


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "default", "jobset-system", "calico-system"])
def test_a_namespace_of_the_cluster_is_refused(namespace: str) -> None:
    assert any(f'workloads_training.namespace is "{namespace}"' in text for text in refusals({"namespace": namespace}))


@pytest.mark.parametrize("path", ["/etc", "/var/lib/trainyard/trainings/../../..", "/var/lib/trainyard/trainings2"])
def test_a_folder_outside_the_one_for_logs_is_refused(path: str) -> None:
    found = refusals({"logs": {"node": "n", "path": path}}, workloads_logs_path="/var/lib/trainyard/trainings")
    assert any("outside workloads_logs_path" in text for text in found), found


def test_a_folder_inside_it_is_accepted() -> None:
    logs = {"node": "n", "path": "/var/lib/trainyard/trainings/mine"}
    assert refusals({"logs": logs}, workloads_logs_path="/var/lib/trainyard/trainings") == []
