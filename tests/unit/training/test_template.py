"""What a pod is told, what it mounts, and where it may run, by role and topology."""

from __future__ import annotations

import ast
import json

import pytest

from tests.unit.training.samples import training
from trainyard.trainings.jobset import run_object, spec_hash
from trainyard.trainings.objects import network_policies, surroundings
from trainyard.trainings.roles import TOPOLOGIES
from trainyard.trainings.template import pod_template


def spec(role: str, **changes: object) -> dict:
    return pod_template(training(**changes), role, "20261121T120000Z-0001")["spec"]


def env(role: str, **changes: object) -> dict:
    return {
        each["name"]: each.get("value", each.get("valueFrom")) for each in spec(role, **changes)["containers"][0]["env"]
    }


def mounts(role: str, **changes: object) -> dict:
    pod = spec(role, **changes)
    sources = {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in pod["volumes"]}
    return {each["mountPath"]: sources[each["name"]] for each in pod["containers"][0]["volumeMounts"]}


def test_pods_with_several_gpus_stay_off_nodes_that_share_them() -> None:
    assert "affinity" not in spec("worker", gpus=1)
    several = spec("worker", gpus=2, topology="multi_worker")["affinity"]["nodeAffinity"]
    required = several["requiredDuringSchedulingIgnoredDuringExecution"]
    (rule,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    assert (rule["key"], rule["operator"]) == ("nvidia.com/gpu.sharing-strategy", "NotIn")
    assert rule["values"] == ["time-slicing"]


def test_tensorflow_takes_as_much_of_a_gpu_as_it_needs() -> None:
    assert env("worker", worker={"gpus": 1})["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert "TF_FORCE_GPU_ALLOW_GROWTH" not in env("ps", worker={"gpus": 1})


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_topology_becomes_an_object(topology: str) -> None:
    found = run_object(training(topology=topology), "20261121T120000Z-0001")
    assert found["kind"] == TOPOLOGIES[topology].back_end
    jobs = found["spec"].get("replicatedJobs") or [{"template": {"spec": found["spec"]}}]
    for job in jobs:
        pods = job["template"]["spec"]["template"] if topology != "service" else found["spec"]["template"]
        labels = pods["metadata"]["labels"]
        assert labels["trainyard.dev/run"] == "mnist"
        assert labels["trainyard.dev/role"] in TOPOLOGIES[topology].roles


def test_where_worker_0_decides_its_end_is_enough() -> None:
    found = run_object(training(topology="multi_worker", timeout=60), "20261121T120000Z-0001")["spec"]
    assert found["successPolicy"]["targetReplicatedJobs"] == ["worker"]
    jobs = {each["name"]: each["template"]["spec"] for each in found["replicatedJobs"]}
    assert jobs["worker"]["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert jobs["worker"]["activeDeadlineSeconds"] == 60
    assert "successPolicy" not in jobs["ps"] and "activeDeadlineSeconds" not in jobs["ps"]


def test_a_program_of_others_is_told_by_the_environment_alone() -> None:
    found = training(topology="multi_worker", flags={}, train_steps=None)
    container = pod_template(found, "worker", "20261121T120000Z-0001")["spec"]["containers"][0]
    assert container["args"] == []
    told = env("worker", topology="multi_worker", logs={"claim": "training"})
    assert told["POD_NAME"] == "worker-$(JOB_COMPLETION_INDEX)-mnist"
    cluster = {
        "ps": ["mnist-ps-0-0.mnist:2222"],
        "worker": ["mnist-worker-0-0.mnist:2222", "mnist-worker-0-1.mnist:2222"],
    }
    assert json.loads(told["CLUSTER_CONFIG"]) == ast.literal_eval(told["CLUSTER_CONFIG"]) == cluster
    assert (told["DATA_DIR"], told["LOG_DIR"], told["RUN"]) == ("/data", "/logs/mnist", "mnist")
    assert told["CHECKPOINT_DIR"] == "/logs/mnist/checkpoints"
    assert list(told).index("JOB_COMPLETION_INDEX") < list(told).index("POD_NAME")


def test_programs_of_others_find_the_files_of_their_run_in_every_role() -> None:
    ps = env("ps", topology="multi_worker", logs={"claim": "training"})
    assert (ps["DATA_DIR"], ps["LOG_DIR"]) == ("/data", "/logs/mnist")
    assert "LOG_DIR" not in env("ps", logs={"claim": "training"})


def test_one_pod_has_no_cluster_and_listens_to_nobody() -> None:
    assert "TF_CONFIG" not in env("chief", topology="single")
    _, own = network_policies(training(topology="single"))
    assert own["spec"]["ingress"] == []
    assert [rule["ports"][0]["port"] for rule in own["spec"]["egress"]] == [53]


def test_an_evaluator_is_told_of_the_cluster_and_is_not_in_it() -> None:
    told = json.loads(
        env("evaluator", evaluator={}, logs={"claim": "c"})["TF_CONFIG"].replace("$(JOB_COMPLETION_INDEX)", "0")
    )
    assert told["task"] == {"type": "evaluator", "index": 0}
    assert set(told["cluster"]) == {"chief", "ps", "worker"}
    assert mounts("evaluator", evaluator={}, logs={"claim": "c"}).keys() == {"/tmp", "/data", "/logs"}


def test_code_is_mounted_and_found() -> None:
    assert mounts("worker", code="r/code@sha256:1")["/opt/trainyard/code"]["image"]["reference"] == "r/code@sha256:1"
    assert env("worker", code="r/code@sha256:1")["PYTHONPATH"] == "/opt/trainyard/code"
    assert spec("worker", code="r/code@sha256:1")["containers"][0]["workingDir"] == "/opt/trainyard/code"
    assert "PYTHONPATH" not in env("worker")
    assert spec_hash(training(code="a")) != spec_hash(training(code="b")) != spec_hash(training())


def test_data_on_a_claim() -> None:
    assert mounts("chief", data={"claim": "datasets"})["/data"] == {
        "persistentVolumeClaim": {"claimName": "datasets", "readOnly": True}
    }


def test_what_a_role_may_ask_for() -> None:
    asked = {
        "node_selector": {"disk": "ssd"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "priority": "urgent",
        "spread": False,
        "shm": "2Gi",
        "grace": 90,
        "env": {"TOKEN": {"secret": "mine", "key": "token"}, "MODE": "fast", "RUN": "other"},
        "volumes": [
            {"name": "model", "mount": "/model", "image": "r/model:1"},
            {"name": "cache", "mount": "/cache", "claim": "cache", "read_only": False},
            {"name": "raw", "mount": "/raw", "path": "/srv/raw"},
        ],
    }
    pod = spec("worker", worker=asked)
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({"disk": "ssd"}, "urgent")
    assert pod["tolerations"][-1] == {"key": "nvidia.com/gpu", "operator": "Exists"}
    assert len(pod["tolerations"]) == 3
    assert "topologySpreadConstraints" not in pod and "topologySpreadConstraints" in spec("ps", worker=asked)
    assert pod["terminationGracePeriodSeconds"] == 90
    told = env("worker", worker=asked)
    assert told["TOKEN"] == {"secretKeyRef": {"name": "mine", "key": "token"}}
    assert (told["MODE"], told["RUN"]) == ("fast", "other")
    found = mounts("worker", worker=asked)
    assert found["/dev/shm"] == {"emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}
    assert found["/model"]["image"]["reference"] == "r/model:1"
    assert found["/cache"] == {"persistentVolumeClaim": {"claimName": "cache"}}
    assert found["/raw"] == {"persistentVolumeClaim": {"claimName": "mnist-raw", "readOnly": True}}
    # Pods at the restricted level may not name a folder of their node.
    made = {(each["kind"], each["metadata"]["name"]): each for each in surroundings(training(worker=asked))}
    assert made["PersistentVolume", "trainings-mnist-raw"]["spec"]["hostPath"]["path"] == "/srv/raw"
    assert ("PersistentVolumeClaim", "mnist-raw") in made
