"""Exit code and role -> what happens next, by the rules of a Job and of a JobSet."""

from __future__ import annotations

import re

import pytest
from ansible.module_utils.trainyard.training.jobset import failure_policy, jobset
from ansible.module_utils.trainyard.training.spec import ROLES

from tests.unit.training.samples import training

REFUSED, DEADLINE = "the run fails", "DeadlineExceeded"
ENDED, REPLACED, RETRIED = "the run has ended", "its pod is replaced", "its pod is replaced, counted"
RESTARTED, COUNTED = "the set is restarted", "the set is restarted, counted"
ACTIONS = {
    "FailJobSet": REFUSED,
    "RestartJobSetAndIgnoreMaxRestarts": RESTARTED,
    "RestartJobSet": COUNTED,
}


def job_end(role: str, failure: int | str) -> tuple[str, str, str]:
    """What the Job of a role does with a failed pod, as kubernetes 1.36 does it (pkg/controller/job, its file
    pod_failure_policy.go): action, and the reason and message of a Job that fails.

    :param failure: exit code, or the type of a true condition of the pod.
    """
    jobs = {each["name"]: each["template"]["spec"] for each in jobset(training(), "first")["spec"]["replicatedJobs"]}
    spec, pod = jobs[role], f"pod trainings/mnist-{role}-0-0-x"
    for number, rule in enumerate(spec["podFailurePolicy"]["rules"]):
        found = ""
        if failure in rule.get("onExitCodes", {}).get("values", []):
            found = f"Container tensorflow for {pod} failed with exit code {failure}"
        if failure in [each["type"] for each in rule.get("onPodConditions", [])]:
            found = f"{pod} has condition {failure}"
        if found:
            return rule["action"], "PodFailurePolicy", f"{found} matching {rule['action']} rule at index {number}"
    if spec["backoffLimit"]:
        return "Count", "", ""
    return "FailJob", "BackoffLimitExceeded", "Job has reached the specified backoff limit"


def set_end(role: str, reason: str, message: str) -> str:
    """What the JobSet does with a failed Job, as JobSet 0.12 does it (pkg/controllers/failure_policy.go): the first
    rule that matches."""
    for rule in failure_policy(training())["rules"]:
        if (
            reason in rule.get("onJobFailureReasons", [reason])
            and any(re.search(each, message) for each in rule.get("onJobFailureMessagePatterns", [""]))
            and role in rule.get("targetReplicatedJobs", [role])
        ):
            return ACTIONS[rule["action"]]
    return "no rule matches"


def what_happens(role: str, failure: int | str) -> str:
    if failure == 0:
        wanted = jobset(training(), "first")["spec"]["successPolicy"]["targetReplicatedJobs"]
        return ENDED if role in wanted else "nothing"
    if failure == DEADLINE:
        return set_end(role, DEADLINE, "Job was active longer than specified deadline")
    action, reason, message = job_end(role, failure)
    return {"Ignore": REPLACED, "Count": RETRIED}.get(action) or set_end(role, reason, message)


@pytest.mark.parametrize(
    ("failure", "chief", "ps", "worker"),
    [
        (0, ENDED, "nothing", "nothing"),
        (1, COUNTED, COUNTED, RETRIED),
        (2, REFUSED, REFUSED, REFUSED),
        (3, REFUSED, COUNTED, RETRIED),
        (4, REFUSED, COUNTED, RETRIED),
        # Told to stop by SIGTERM (drained, evicted, deleted by hand): saved, not counted.
        (42, RESTARTED, RESTARTED, REPLACED),
        (75, COUNTED, COUNTED, RETRIED),
        (137, COUNTED, COUNTED, RETRIED),
        (143, COUNTED, COUNTED, RETRIED),
        ("DisruptionTarget", RESTARTED, RESTARTED, REPLACED),
        (DEADLINE, REFUSED, REFUSED, REFUSED),
    ],
)
def test_what_follows_from_an_exit(failure: int | str, chief: str, ps: str, worker: str) -> None:
    assert {role: what_happens(role, failure) for role in ROLES} == {"chief": chief, "ps": ps, "worker": worker}


def test_workers_that_fail_too_often_restart_the_set() -> None:
    assert set_end("worker", "BackoffLimitExceeded", "Job has reached the specified backoff limit") == COUNTED
