"""The JobSet that comes out of a training: addresses, security, failures, and what makes two runs the same run."""

from __future__ import annotations

import json

import pytest

from tests.unit.training.samples import DATA_IMAGE, LIMITS, training
from trainyard.trainings.jobset import run_object, spec_hash
from trainyard.trainings.template import cluster, pod_template, tf_config

FIRST = "20261121T120000Z-0001"

ROLES = ("chief", "ps", "worker")


def job(role: str, **changes: object) -> dict:
    jobs = {each["name"]: each for each in run_object(training(**changes), FIRST)["spec"]["replicatedJobs"]}
    return jobs[role]["template"]["spec"]


def container(role: str, **changes: object) -> dict:
    return pod_template(training(**changes), role, FIRST)["spec"]["containers"][0]


def test_cluster_names_every_pod_by_its_dns_name() -> None:
    assert cluster(training(port=8000)) == {
        "chief": ["mnist-chief-0-0.mnist:8000"],
        "ps": ["mnist-ps-0-0.mnist:8000"],
        "worker": ["mnist-worker-0-0.mnist:8000", "mnist-worker-0-1.mnist:8000"],
    }


@pytest.mark.parametrize("role", ROLES)
def test_tf_config_is_json_once_the_kubelet_put_the_index_in(role: str) -> None:
    expanded = json.loads(tf_config(training(), role).replace("$(JOB_COMPLETION_INDEX)", "1"))
    assert expanded == {"cluster": cluster(training()), "task": {"type": role, "index": 1}}


@pytest.mark.parametrize("role", ROLES)
def test_index_is_defined_before_it_is_used(role: str) -> None:
    names = [each["name"] for each in container(role)["env"]]
    assert names.index("JOB_COMPLETION_INDEX") < names.index("TF_CONFIG")


@pytest.mark.parametrize("role", ROLES)
def test_pods_meet_the_restricted_level(role: str) -> None:
    spec = pod_template(training(), role, FIRST)["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = spec["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True
    assert all(set(each) & {"emptyDir", "image", "persistentVolumeClaim"} for each in spec["volumes"])


def test_only_the_chief_writes_logs_and_only_readers_get_data() -> None:
    mounts = {role: {each["mountPath"] for each in container(role)["volumeMounts"]} for role in ROLES}
    assert mounts == {"chief": {"/tmp", "/data", "/logs"}, "ps": {"/tmp"}, "worker": {"/tmp", "/data"}}
    assert container("chief")["args"][-3:] == ["--log_dir=/logs", "--attempt=20261121T120000Z-0001", "--resume=auto"]
    assert not any(each.startswith("--log_dir") for each in container("worker")["args"])


def test_data_is_an_image_volume_by_its_reference() -> None:
    volumes = {each["name"]: each for each in pod_template(training(), "chief", FIRST)["spec"]["volumes"]}
    assert volumes["data"]["image"] == {"reference": DATA_IMAGE, "pullPolicy": "IfNotPresent"}
    assert "data" not in str(pod_template(training(data=None), "chief", FIRST)["spec"]["volumes"])


def test_requests_are_limits_unless_said() -> None:
    assert container("ps")["resources"]["requests"] == LIMITS["limits"]
    assert container("worker")["resources"]["requests"] == {"cpu": "250m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("role", "backoff", "rules"),
    [
        ("chief", 0, [("FailJob", [2, 3, 4, 5]), ("FailJob", [42]), ("FailJob", "DisruptionTarget")]),
        ("ps", 0, [("FailJob", [2]), ("FailJob", [42]), ("FailJob", "DisruptionTarget")]),
        ("worker", 6, [("FailJob", [2]), ("Ignore", [42]), ("Ignore", "DisruptionTarget")]),
        # Neither killed for memory, nor refused, nor evicted does it end anything: the run goes on without it.
        ("evaluator", 2**31 - 1, [("Ignore", [42]), ("Ignore", "DisruptionTarget")]),
    ],
)
def test_pod_failures_by_role(role: str, backoff: int, rules: list) -> None:
    changes = {"evaluator": {}, "logs": {"claim": "training"}} if role == "evaluator" else {}
    spec = job(role, **changes)
    found = [
        (
            rule["action"],
            rule["onExitCodes"]["values"] if "onExitCodes" in rule else rule["onPodConditions"][0]["type"],
        )
        for rule in spec["podFailurePolicy"]["rules"]
    ]
    assert (spec["backoffLimit"], found) == (backoff, rules)
    # A pod failure policy is refused with any other restart policy.
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_time_to_save(role: str) -> None:
    """A server serves on until the chief has saved, so that all need the same time."""
    assert pod_template(training(), role, FIRST)["spec"]["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("role", ROLES)
def test_threads_follow_the_limit_and_env_has_the_last_word(role: str) -> None:
    names = ["TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"]
    env = {each["name"]: each for each in container(role)["env"]}
    assert [env[name]["valueFrom"] for name in names] == [{"resourceFieldRef": {"resource": "limits.cpu"}}] * 2
    own = [each for each in container(role, env={"OMP_NUM_THREADS": 1})["env"] if each["name"] == "OMP_NUM_THREADS"]
    assert own == [{"name": "OMP_NUM_THREADS", "value": "1"}]


@pytest.mark.parametrize(("cpu", "threads"), [("500m", "2"), ("1", "2"), ("2", "2"), ("2500m", "3"), ("8", "8")])
def test_operations_that_wait_for_another_process_are_never_alone(cpu: str, threads: str) -> None:
    env = container("worker", limits={"cpu": cpu, "memory": "1Gi"})["env"]
    assert [each["value"] for each in env if each["name"] == "TF_NUM_INTEROP_THREADS"] == [threads]


@pytest.mark.parametrize(("role", "ports"), [("chief", [8000, 8001]), ("ps", [8000]), ("worker", [8000])])
def test_the_ports_of_a_pod(role: str, ports: list[int]) -> None:
    assert [each["containerPort"] for each in container(role, port=8000)["ports"]] == ports


def test_success_is_the_chiefs() -> None:
    spec = run_object(training(), FIRST)["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["chief"]}
    assert spec["network"]["subdomain"] == "mnist"


def test_an_unlimited_run_has_no_deadline() -> None:
    assert job("chief", timeout=60)["activeDeadlineSeconds"] == 60
    assert "activeDeadlineSeconds" not in job("chief"), "a run has a deadline only if it was given one"


def test_a_finished_run_of_an_earlier_version_is_the_same_run() -> None:
    # It had the default of 900 s.
    assert spec_hash(training()) == spec_hash(training(timeout=900)) != spec_hash(training(timeout=60))
    bound = {"metric": "loss", "at_least": 0.1}
    assert spec_hash(training(success=bound)) != spec_hash(training(success={**bound, "at_most": 0.2}))
    assert "activeDeadlineSeconds" not in job("chief", timeout=0)


def test_the_hash_is_of_the_run_not_of_the_attempt() -> None:
    hashes = {run_object(training(), attempt)["metadata"]["annotations"]["trainyard.dev/spec-hash"] for attempt in "ab"}
    assert hashes == {spec_hash(training())}


@pytest.mark.parametrize("change", [{"train_steps": 201}, {"image": "x"}, {"port": 2223}, {"max_restarts": 9}])
def test_whatever_changes_the_run_changes_the_hash(change: dict) -> None:
    assert spec_hash(training(**change)) != spec_hash(training())
