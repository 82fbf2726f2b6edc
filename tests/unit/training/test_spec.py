"""What is refused in a description of a training, and how it is said."""

from __future__ import annotations

import pytest
import yaml
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.training.spec import parse_training

LIMITS = {"limits": {"cpu": "2", "memory": "1Gi"}}
DATA = {
    "name": "mnist",
    "namespace": "trainings",
    "image": "registry.example.com/tensorflow:2.21.0",
    "command": ["python"],
    "chief": LIMITS,
    "ps": LIMITS,
    "worker": {"replicas": 2, **LIMITS},
    "logs": {},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train_stps": 5}, ["workloads_training.train_stps is 5", "Did you mean train_steps?"]),
        ({"name": "Mnist"}, ["workloads_training.name is 'Mnist'", "DNS label"]),
        ({"name": "m" * 41}, ["at most 40 characters"]),
        ({"image": ""}, ["workloads_training.image is ''"]),
        ({"train_steps": -1}, ["train_steps is -1", "0 = until stopped"]),
        ({"train_steps": True}, ["train_steps is True"]),
        ({"train_steps": "200"}, ["train_steps is '200'", "whole number"]),
        ({"batch_size": 0}, ["batch_size is 0"]),
        ({"learning_rate": 0}, ["learning_rate is 0"]),
        ({"accuracy_bound": 90}, ["accuracy_bound is 90", "fraction"]),
        ({"train_steps": 0, "accuracy_bound": 0.9}, ["accuracy_bound is 0.9", "train_steps is 0"]),
        ({"port": 80}, ["port is 80", "1024"]),
        ({"port": 65535}, ["port is 65535", "65534"]),
        ({"image_pull_policy": "Sometimes"}, ["IfNotPresent"]),
        ({"chief": {"replicas": 2, **LIMITS}}, ["chief.replicas is 2", "must be 1"]),
        ({"ps": {"replicas": 0, **LIMITS}}, ["ps.replicas is 0"]),
        ({"ps": {"limit": {}}}, ["ps.limit is {}"]),
        ({"worker": {"replicas": 2}}, ["worker.limits.cpu is missing"]),
        ({"worker": {"limits": {"cpu": "2", "memory": "1 GB"}}}, ["worker.limits.memory is '1 GB'", "1Gi"]),
        ({"logs": {"node": "worker1"}}, ["logs.path is ''", "together"]),
        ({"logs": {"node": "worker1", "path": "logs"}}, ["logs.path is 'logs'", "absolute"]),
    ],
)
def test_refusals_name_the_key_the_value_and_the_remedy(change: dict, said: list[str]) -> None:
    with pytest.raises(TrainyardError) as caught:
        parse_training({**DATA, **change})
    for part in said:
        assert part in str(caught.value)
    assert "Set it in workloads_training." in caught.value.remedy


@pytest.mark.parametrize("key", ["name", "namespace", "image", "command", "chief", "ps", "worker", "logs"])
def test_missing_keys(key: str) -> None:
    with pytest.raises(TrainyardError, match=rf"workloads_training\.{key} is missing"):
        parse_training({name: value for name, value in DATA.items() if name != key})


def test_flags_are_those_that_the_workload_lists() -> None:
    training = parse_training({**DATA, "flags": ["epochs", "train_steps"], "epochs": 3, "train_steps": 0})
    assert training.flags == {"epochs": 3, "train_steps": 0}
    assert training.endless
    with pytest.raises(TrainyardError, match="batch_size"):
        parse_training({**DATA, "flags": ["epochs"], "batch_size": 20})


def test_every_entry_of_the_catalogue_is_a_training(root) -> None:
    catalogue = yaml.safe_load((root / "workloads" / "catalogue.yml").read_text())
    for entry in catalogue.values():
        training = parse_training({**entry["training"], "image": "x", "logs": {}})
        assert entry["description"]
        assert set(training.flags) <= set(entry["training"]["flags"])


def test_defaults_of_the_chart_that_this_replaces(root) -> None:
    entry = yaml.safe_load((root / "workloads" / "catalogue.yml").read_text())["mnist_ps"]["training"]
    knobs = {key: entry[key] for key in ("train_steps", "batch_size", "learning_rate")}
    assert knobs == {"train_steps": 200, "batch_size": 20, "learning_rate": 0.001}
    assert (entry["worker"]["replicas"], entry["ps"]["replicas"]) == (2, 1)
