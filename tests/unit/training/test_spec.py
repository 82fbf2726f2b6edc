"""What is refused in a description of a training, and how it is said."""

from __future__ import annotations

import pytest

from tests.unit.training.samples import COMMON, LIMITS, described, training
from trainyard.core.errors import TrainyardError
from trainyard.trainings.roles import TOPOLOGIES, clean_exits
from trainyard.trainings.spec import check, parse_training


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_restats": 5}, ["max_restats is 5", "Did you mean max_restarts?"]),
        ({"name": "Mnist"}, ["name is 'Mnist'", "DNS label"]),
        ({"name": "m" * 41}, ["at most 40 characters"]),
        ({"image": ""}, ["chief.image is ''", "worker.image is ''"]),
        ({"topology": "ring"}, ["parameter_server, multi_worker, single", "ring"]),
        ({"train_steps": -1}, ["train_steps is -1", "0 = until stopped"]),
        ({"train_steps": True}, ["train_steps is True"]),
        ({"train_steps": "many"}, ["train_steps", "unable to convert to int"]),
        ({"batch_size": 0}, ["batch_size is 0"]),
        ({"learning_rate": 0}, ["learning_rate is 0"]),
        ({"learning_rate": "nan"}, ["learning_rate is nan"]),
        ({"accuracy_bound": 90}, ["accuracy_bound is 90", "fraction"]),
        ({"train_steps": 0, "accuracy_bound": 0.9}, ["accuracy_bound is 0.9", "train_steps 0"]),
        ({"port": 80}, ["port is 80", "1024"]),
        ({"port": 65535}, ["port is 65535", "65534"]),
        ({"image_pull_policy": "Sometimes"}, ["IfNotPresent"]),
        ({"chief": {"replicas": 2}}, ["chief.replicas is 2", "must be 1"]),
        ({"ps": {"replicas": 0}}, ["ps.replicas is 0", "from 1 to 999"]),
        ({"ps": {"limit": {}}}, ["ps.limit is set", "Did you mean limits?"]),
        ({"worker": {"limits": {}}}, ["worker.limits.cpu is missing", "worker.limits.memory is missing"]),
        ({"worker": {"limits": {"cpu": "2", "memory": "1 GB"}}}, ["worker.limits.memory is '1 GB'", "1Gi"]),
        ({"worker": {"requests": {"cpu": "much"}}}, ["worker.requests.cpu is 'much'"]),
        ({"worker": {"gpus": -1}}, ["worker.gpus is -1"]),
        ({"worker": {"shm": "big"}}, ["worker.shm is 'big'", "512Mi"]),
        ({"worker": {"grace": -1}}, ["worker.grace is -1"]),
        ({"worker": {"env": {"1A": 1}}}, ["worker.env.1A is not a valid name"]),
        ({"worker": {"env": {"KEY": {"secret": "s"}}}}, ["worker.env.KEY has secret", "secret and key"]),
        ({"worker": {"env": {"KEY": ["s3cret"]}}}, ["worker.env.KEY is a list"]),
        ({"boss": {}}, ["boss is 1", "roles are chief, ps, worker, evaluator"]),
        ({"evaluator": {}}, ["evaluator.replicas is 1", "needs shared storage"]),
        ({"logs": {"node": "worker1"}}, ["logs.path is ''", "together"]),
        ({"logs": {"node": "worker1", "path": "logs"}}, ["logs.path is 'logs'", "absolute"]),
        ({"logs": {"claim": "a", "path": "/b", "node": "c"}}, ["logs.claim is 'a'", "must be empty"]),
        ({"success": "maybe"}, ["success is 'maybe'", "exit_code"]),
        ({"success": {"metric": "accuracy"}}, ["success is", "at_least"]),
        ({"success": {"metric": "a", "at_least": 1}, "train_steps": 0}, ["success is", "never compared"]),
    ],
)
def test_refusals_name_the_key_the_value_and_the_remedy(change: dict, said: list[str]) -> None:
    if "boss" in change:
        data = described()
        data["roles"] = [*data["roles"], {"name": "boss", **COMMON}]
    else:
        data = described(**change)
    with pytest.raises(TrainyardError) as caught:
        parse_training(data)
    for part in said:
        assert part in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.remedy == "Change it in workloads_trainings."


@pytest.mark.parametrize(
    ("volume", "said"),
    [
        ({"name": "logs"}, "worker.volumes.logs is not a valid name"),
        ({}, "has no source"),
        ({"claim": "a", "image": "b"}, "has no source, or several"),
        ({"claim": "a", "mount": "etc"}, "mount is 'etc'"),
        ({"claim": "a", "mount": "/data/more"}, "the path is in use"),
        ({"claim": "a", "mount": "/a/../data"}, "must be an absolute path"),
        ({"path": "../x"}, "path is '../x'"),
        ({"path": "/"}, "path is '/'"),
        ({"image": "a", "read_only": False}, "cannot be written"),
        ({"clam": "a"}, "clam"),
    ],
)
def test_volumes_that_cannot_be(volume: dict, said: str) -> None:
    _, faults = check(described(worker={"volumes": [{"name": "more", "mount": "/more", **volume}]}))
    assert said in "; ".join(map(str, faults))


@pytest.mark.parametrize("limits", [{"nvidia.com/gpu": "0.5"}, {"nvidia.com/gpu": "500m"}, {"nvidia.com/gpu": "1Gi"}])
def test_gpus_that_are_no_whole_number(limits: dict[str, str]) -> None:
    _, faults = check(described(worker={"limits": {**LIMITS["limits"], **limits}}))
    assert {str(each).partition(": ")[2] for each in faults} == {"it must be a whole number."}
    assert "worker.limits.nvidia.com/gpu" in str(faults[0])


def test_half_a_gpu() -> None:
    _, faults = check(described(worker={"gpus": 1.5}))
    assert len(faults) == 1 and "gpus" in str(faults[0])


@pytest.mark.parametrize("name", ["x-import", "x-stranger", "default-deny", "x-worker-0", "a-b-ps-12", "x-chief-0"])
def test_names_that_objects_of_other_runs_have(name: str) -> None:
    _, faults = check(described(name=name))
    assert [fault.key for fault in faults] == ["run"]
    assert f"run is '{name}': it must be another name" in str(faults[0])


@pytest.mark.parametrize("name", ["import", "stranger", "importer", "x-imports", "worker-0x", "mnist-ps", "x-worker"])
def test_names_that_only_look_like_it(name: str) -> None:
    assert training(name=name).name == name


def test_everything_that_is_wrong_is_said_at_once() -> None:
    wrong = described(port=80, train_steps=-1, worker={"replicas": -1, "limits": {}}, nmae="x")
    _, faults = check(wrong)
    places = [fault.key for fault in faults]
    for place in (
        "nmae",
        "train_steps",
        "chief.port",
        "ps.port",
        "worker.port",
        "worker.replicas",
        "worker.limits.cpu",
    ):
        assert place in places, faults


@pytest.mark.parametrize("key", ["name", "workload", "roles", "logs"])
def test_missing_keys(key: str) -> None:
    with pytest.raises(TrainyardError, match=f"missing required arguments: {key}"):
        parse_training({name: value for name, value in described().items() if name != key})


def test_a_role_of_the_topology_that_is_missing() -> None:
    data = described()
    data["roles"] = data["roles"][:2]
    with pytest.raises(TrainyardError, match="worker is missing: a training of the topology parameter_server"):
        parse_training(data)


def test_numbers_may_be_written_as_text() -> None:
    assert training(train_steps="300", max_restarts="1").flags == {"train_steps": 300}


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"worker": {"gpus": 4}}, ["worker.gpus is 4"]),
        ({"worker": {"limits": {**LIMITS["limits"], "nvidia.com/gpu": 2}}}, ["worker.gpus is 2"]),
        ({"gpus": 2}, ["chief.gpus is 2", "ps.gpus is 2", "worker.gpus is 2"]),
        ({"topology": "single", "gpus": 2}, ["chief.gpus is 2"]),
        ({"worker": {"gpus": 1}}, []),
        ({"topology": "multi_worker", "worker": {"gpus": 8}}, []),
        ({"topology": "single", "gpus": 8, "flags": {}}, []),
        ({"topology": "service", "gpus": 8}, []),
    ],
)
def test_the_engine_has_one_gpu_in_each_pod(changes: dict, faults: list[str]) -> None:
    found = check(described(**changes))[1]
    assert [f"{each.key} {each.shown}" for each in found] == faults
    assert all("computes on one GPU; set gpus to 1" in each.want for each in found)


def test_gpus_are_a_limit_and_requests_follow_the_limits() -> None:
    worker = training(topology="multi_worker", worker={"gpus": 2, "requests": {"cpu": "1"}}).roles["worker"]
    assert worker.limits == {**LIMITS["limits"], "nvidia.com/gpu": "2"}
    assert worker.requests == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}


def test_a_role_without_pods_needs_nothing() -> None:
    run = training(topology="multi_worker", ps={"replicas": 0, "limits": {}})
    assert list(run.roles) == ["worker"]
    assert run.deciding == "worker-0"


@pytest.mark.parametrize(
    ("changes", "deciding"),
    [
        ({}, "chief-0"),
        ({"topology": "single"}, "chief-0"),
        ({"topology": "multi_worker"}, "worker-0"),
        ({"topology": "multi_worker", "chief": {}}, "chief-0"),
    ],
)
def test_whose_exit_is_the_runs(changes: dict, deciding: str) -> None:
    assert training(**changes).deciding == deciding


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_who_decides_must_end_with_0(topology: str) -> None:
    run = training(topology=topology)
    assert clean_exits(topology, run.deciding, run.deciding) == {0}


def test_a_strangers_program_may_have_to_be_killed() -> None:
    assert 137 in clean_exits("multi_worker", "worker-1", "worker-0")
    assert 137 not in clean_exits("parameter_server", "worker-1", "chief-0")
    assert {0, 42, 143, "stopped"} <= clean_exits("parameter_server", "ps-0", "chief-0")
