"""Exit code and role -> what happens next, by the rules of a Job and of a JobSet."""

from __future__ import annotations

import re

import pytest

from tests.unit.training.samples import training
from trainyard.trainings.jobset import failure_policy, run_object
from trainyard.trainings.model import Training

FIRST = "20261121T120000Z-0001"

REFUSED, DEADLINE = "the run fails", "DeadlineExceeded"
ENDED, REPLACED, RETRIED = "the run has ended", "its pod is replaced", "its pod is replaced, counted"
RESTARTED, COUNTED = "the set is restarted", "the set is restarted, counted"
ACTIONS = {
    "FailJobSet": REFUSED,
    "RestartJobSetAndIgnoreMaxRestarts": RESTARTED,
    "RestartJobSet": COUNTED,
}


def job_end(run: Training, role: str, failure: int | str) -> tuple[str, str, str]:
    """What the Job of a role does with a failed pod, as kubernetes 1.36 does it (pkg/controller/job, its file
    pod_failure_policy.go): action, and the reason and message of a Job that fails.

    :param failure: exit code, or the type of a true condition of the pod.
    """
    jobs = {each["name"]: each["template"]["spec"] for each in run_object(run, FIRST)["spec"]["replicatedJobs"]}
    spec, pod = jobs[role], f"pod trainings/mnist-{role}-0-0-x"
    for number, rule in enumerate(spec["podFailurePolicy"]["rules"]):
        found = ""
        if failure in rule.get("onExitCodes", {}).get("values", []):
            found = f"Container tensorflow for {pod} failed with exit code {failure}"
        if failure in [each["type"] for each in rule.get("onPodConditions", [])]:
            found = f"{pod} has condition {failure}"
        if found:
            return rule["action"], "PodFailurePolicy", f"{found} matching {rule['action']} rule at index {number}"
    if spec["backoffLimit"] == 2**31 - 1:
        return "Ignore", "", ""
    if spec["backoffLimit"]:
        return "Count", "", ""
    return "FailJob", "BackoffLimitExceeded", "Job has reached the specified backoff limit"


def set_end(run: Training, role: str, reason: str, message: str) -> str:
    """What the JobSet does with a failed Job, as JobSet 0.12 does it (pkg/controllers/failure_policy.go): the first
    rule that matches."""
    for rule in failure_policy(run)["rules"]:
        if (
            reason in rule.get("onJobFailureReasons", [reason])
            and any(re.search(each, message) for each in rule.get("onJobFailureMessagePatterns", [""]))
            and role in rule.get("targetReplicatedJobs", [role])
        ):
            return ACTIONS[rule["action"]]
    return "no rule matches"


def what_happens(run: Training, role: str, failure: int | str) -> str:
    if failure == 0:
        wanted = run_object(run, FIRST)["spec"]["successPolicy"]["targetReplicatedJobs"]
        return ENDED if role in wanted else "nothing"
    if failure == DEADLINE:
        return set_end(run, role, DEADLINE, "Job was active longer than specified deadline")
    action, reason, message = job_end(run, role, failure)
    return {"Ignore": REPLACED, "Count": RETRIED}.get(action) or set_end(run, role, reason, message)


@pytest.mark.parametrize(
    ("failure", "chief", "ps", "worker", "evaluator"),
    [
        (0, ENDED, "nothing", "nothing", "nothing"),
        (1, COUNTED, COUNTED, RETRIED, REPLACED),
        (2, REFUSED, REFUSED, REFUSED, REPLACED),
        (3, REFUSED, COUNTED, RETRIED, REPLACED),
        (4, REFUSED, COUNTED, RETRIED, REPLACED),
        (5, REFUSED, COUNTED, RETRIED, REPLACED),
        # Told to stop by SIGTERM (drained, evicted, deleted by hand): saved, not counted.
        (42, RESTARTED, RESTARTED, REPLACED, REPLACED),
        (75, COUNTED, COUNTED, RETRIED, REPLACED),
        (137, COUNTED, COUNTED, RETRIED, REPLACED),
        (143, COUNTED, COUNTED, RETRIED, REPLACED),
        ("DisruptionTarget", RESTARTED, RESTARTED, REPLACED, REPLACED),
        (DEADLINE, REFUSED, REFUSED, REFUSED, REFUSED),
    ],
)
def test_what_follows_from_an_exit_on_parameter_servers(
    failure: int | str, chief: str, ps: str, worker: str, evaluator: str
) -> None:
    run = training(evaluator={}, logs={"claim": "training"})
    expected = {"chief": chief, "ps": ps, "worker": worker, "evaluator": evaluator}
    assert {role: what_happens(run, role, failure) for role in run.roles} == expected


@pytest.mark.parametrize(
    ("failure", "ps", "worker"),
    [
        (0, "nothing", ENDED),
        (1, COUNTED, COUNTED),
        (2, REFUSED, REFUSED),
        (3, COUNTED, REFUSED),
        (5, COUNTED, REFUSED),
        (42, RESTARTED, RESTARTED),
        ("DisruptionTarget", RESTARTED, RESTARTED),
        (DEADLINE, REFUSED, REFUSED),
    ],
)
def test_what_follows_from_an_exit_where_worker_0_decides(failure: int | str, ps: str, worker: str) -> None:
    run = training(topology="multi_worker")
    assert {role: what_happens(run, role, failure) for role in run.roles} == {"ps": ps, "worker": worker}


def test_a_pod_that_is_alone_is_started_again_by_its_job() -> None:
    spec = run_object(training(topology="single", max_restarts=5), FIRST)["spec"]
    actions = [rule["action"] for rule in spec["podFailurePolicy"]["rules"]]
    assert (spec["backoffLimit"], actions) == (5, ["FailJob", "Ignore", "Ignore"])


def test_workers_that_fail_too_often_restart_the_set() -> None:
    assert (
        set_end(training(), "worker", "BackoffLimitExceeded", "Job has reached the specified backoff limit") == COUNTED
    )
