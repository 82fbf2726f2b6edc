"""Following a run through what may happen to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.samples import training
from tests.unit.training.scripted import SETS, Cluster, Script
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.trainings.follow import Follower, Settings
from trainyard.trainings.model import Training

TRAINING = training(logs={"claim": "training"})


def step(number: int) -> dict[str, Any]:
    return {"event": "step", "step": number, "steps_total": 200}


END = {"event": "end", "step": 200, "result": "passed", "accuracy": 0.95, "seconds": 20.0}
STARTS: Script = [(1, "start"), (5, "say", "chief-0", step(20))]
ENDS: Script = [
    (30, "say", "chief-0", END),
    (30, "exit", "chief-0", 0),
    (31.5, "end", "Completed"),
    (32, "delete", "ps-0"),
    (32, "delete", "worker-0"),
    (32, "delete", "worker-1"),
]


def follow(
    tmp_path: Path, script: Script, run: Training = TRAINING, submitted: bool = True
) -> tuple[Any, Cluster, list[str]]:
    """The result, or the error that it ended with; the cluster as it was left; and what was said."""
    cluster, said = Cluster(run, script), list[str]()
    settings = Settings(str(tmp_path), isolation_probe=False)
    follower = Follower(Api(cluster), run, settings, said.append, cluster.clock)
    try:
        return follower.follow("20261121T120000Z-0001", submitted=submitted), cluster, said
    except TrainyardError as error:
        return error, cluster, said


def kept(tmp_path: Path) -> dict[str, str]:
    """Kept logs by role and index."""
    logs = (tmp_path / "trainings-mnist" / "20261121T120000Z-0001").glob("*.log")
    return {path.name.removeprefix("mnist-")[:-4]: path.read_text() for path in logs}


def test_a_run_that_passes(tmp_path: Path) -> None:
    result, cluster, said = follow(tmp_path, [*STARTS, (12, "say", "chief-0", step(40)), *ENDS])
    assert (result["result"], result["accuracy"], result["released"]) == ("passed", 0.95, True)
    assert result["roles"] == {"chief-0": 0, "ps-0": "stopped", "worker-0": "stopped", "worker-1": "stopped"}
    assert 31.5 <= result["apply_to_completion_seconds"] < 32, "the end is seen when it comes"
    assert cluster.record == result
    assert "training mnist: step 20 of 200" in said and "training mnist: step 40 of 200" in said
    assert [line.count('"event"') for line in kept(tmp_path).values()].count(3) == 1, "the chief's log, no line twice"


def test_rates_of_error_are_said_and_kept(tmp_path: Path) -> None:
    judged = {"event": "evaluate", "step": 200, "accuracy": 0.9, "character_error_rate": 0.1, "word_error_rate": 0.25}
    result, _, said = follow(tmp_path, [*STARTS, (29, "say", "chief-0", judged), *ENDS])
    assert (result["character_error_rate"], result["word_error_rate"]) == (0.1, 0.25)
    assert "passed, accuracy 0.95, character error rate 0.1, word error rate 0.25, " in said[-1]


def test_progress_is_shown_within_two_seconds(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [(1, "start"), *((5 + n, "say", "chief-0", step(n)) for n in range(20)), *ENDS])
    ages = []

    def say(line: str) -> None:
        if "step" in line:
            ages.append(cluster.clock.now - 5 - int(line.split("step ")[1].split()[0]))

    Follower(Api(cluster), TRAINING, Settings(str(tmp_path), isolation_probe=False), say, cluster.clock).follow(
        "20261121T120000Z-0001", submitted=True
    )
    assert len(ages) > 8 and max(ages[:-1]) <= 2


def test_a_set_that_restarts(tmp_path: Path) -> None:
    script = [*STARTS, (10, "exit", "chief-0", 75), (11, "restart", 1), (20, "say", "chief-0", step(40)), *ENDS]
    result, _, said = follow(tmp_path, script)
    assert (result["result"], result["restarts"], result["roles"]["chief-0"]) == ("passed", 1, 0)
    assert "training mnist: restarted, 1 of 3" in said
    assert sum("chief" in name for name in kept(tmp_path)) == 2


def test_a_chief_that_is_replaced_without_counting(tmp_path: Path) -> None:
    script = [*STARTS, (10, "exit", "chief-0", 42), (11, "restart", 0), (20, "say", "chief-0", step(40)), *ENDS]
    result, _, said = follow(tmp_path, script)
    assert (result["result"], result["restarts"], result["steps"]) == ("passed", 0, 200)
    assert not any("restarted" in line for line in said)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (1, ""),
        (2, "refused its input"),
        (3, "Raise train_steps, or lower accuracy_bound"),
        (4, "lower learning_rate"),
        (5, "Run this again to continue"),
        (75, "made no progress"),
        (137, "raise limits.memory"),
        (42, ""),
    ],
)
def test_a_run_that_fails(tmp_path: Path, code: int, remedy: str) -> None:
    script = [*STARTS, (10, "say", "chief-0", {"event": "last words"}), (10, "exit", "chief-0", code)]
    error, cluster, _ = follow(tmp_path, [*script, (11, "end", "Failed", "FailedJobs", "job mnist-chief-0 failed")])
    assert "Training mnist failed: FailedJobs: job mnist-chief-0 failed" in error.message
    assert error.facts["roles"]["chief-0"] == code
    assert "last words" in error.message
    assert remedy in error.remedy and bool(remedy) == bool(error.remedy)
    assert (cluster.record["result"], cluster.record["steps"]) == ("failed", 20)
    assert "FailedJobs" in cluster.record["why"]
    assert len(cluster.record["logs"]) == 4
    assert f"DELETE {SETS}/mnist" not in cluster.calls


def test_an_end_that_no_pod_shows_is_seen_within_seconds(tmp_path: Path) -> None:
    error, cluster, _ = follow(tmp_path, [*STARTS, (10, "end", "Failed", "DeadlineExceeded", "too long")])
    assert "DeadlineExceeded: too long" in error.message
    assert cluster.clock.now < 20


def test_a_pod_that_cannot_start_is_given_up_with_the_schedulers_reason(tmp_path: Path) -> None:
    why = "0/3 nodes are available: 3 Insufficient cpu."
    error, cluster, said = follow(tmp_path, [(1, "start", "worker-1", {"why": why})])
    assert "not all pods ran within start_timeout, 300 s" in error.message
    assert f"worker 1/2 running (worker-1 Unschedulable: {why})" in error.message
    assert any("Insufficient cpu" in line for line in said)
    assert 300 < cluster.clock.now < 310
    assert f"DELETE {SETS}/mnist" in cluster.calls, "it holds nothing"
    assert cluster.record["result"] == "failed"


@pytest.mark.parametrize(("after", "passes"), [(120, True), (200, False)])
def test_a_run_whose_pods_go_late(tmp_path: Path, after: int, passes: bool) -> None:
    script = [
        *STARTS,
        *ENDS[:3],
        (after, "delete", "ps-0"),
        (after, "delete", "worker-0"),
        (after, "delete", "worker-1"),
    ]
    result, cluster, _ = follow(tmp_path, script)
    if passes:
        assert (result["result"], result["released"]) == ("passed", True)
        assert cluster.clock.now >= after
    else:
        assert "these pods did not end with the run: mnist-ps-0" in result.message
        assert cluster.record["result"] == "failed"


def test_what_a_stranger_writes_does_not_stop_the_follower(tmp_path: Path) -> None:
    run = training(logs={"claim": "training"}, topology="multi_worker", flags={})
    odd = ({"event": "step", "step": "7 of 9", "loss": []}, {"event": "end", "time": "late"}, {"event": {"a": 1}})
    script = [(1, "start"), *((3 + n, "say", "worker-0", each) for n, each in enumerate(odd))]
    script += [(9, "exit", "worker-0", 0), (10, "end", "Completed"), (10, "delete", "ps-0"), (10, "delete", "worker-1")]
    result, _, _ = follow(tmp_path, script, run)
    assert (result["result"], result["steps"]) == ("passed", 0)


def test_pods_may_take_as_long_as_their_grace_to_go(tmp_path: Path) -> None:
    late = [(500, "delete", place) for place in ("ps-0", "worker-0", "worker-1")]
    run = training(logs={"claim": "training"}, ps={"grace": 600})
    result, cluster, _ = follow(tmp_path, [*STARTS, *ENDS[:3], *late], run)
    assert (result["result"], result["released"]) == ("passed", True)
    assert cluster.clock.now >= 500


def test_a_run_that_ended_before_anybody_followed_keeps_its_logs(tmp_path: Path) -> None:
    ended = [(0, *each[1:]) for each in (*STARTS, *ENDS[:3])]
    run = [*ended, *((0, "exit", place, 143) for place in ("ps-0", "worker-0", "worker-1"))]
    result, _, _ = follow(tmp_path, run, submitted=False)
    assert (result["result"], result["apply_to_completion_seconds"]) == ("passed", 0.0)
    assert len(kept(tmp_path)) == 4


def test_a_run_without_end_is_followed_to_its_first_step(tmp_path: Path) -> None:
    run = training(logs={"claim": "training"}, train_steps=0)
    result, cluster, _ = follow(tmp_path, STARTS, run)
    assert (result["result"], result["steps"]) == ("running", 20)
    assert result["isolation"]["detail"] == "isolation_probe is off"
    assert cluster.record["result"] == "running" and cluster.clock.now < 10
