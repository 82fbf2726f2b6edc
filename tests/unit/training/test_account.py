"""A run's own account of its end: without it a success is not believed, and it is read as soon as it can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.training.samples import training
from tests.unit.training.scripted import SETS, Cluster, Script
from tests.unit.training.test_follow import ENDS, STARTS, TRAINING
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings.follow import Follower, Settings
from trainyard.trainings.model import Training
from trainyard.trainings.run import Run

FOR_EVER = 1e9


def follower(tmp_path: Path, cluster: Cluster, run: Training = TRAINING) -> Follower:
    return Follower(Api(cluster), run, Settings(str(tmp_path), isolation_probe=False), lambda _: None, cluster.clock)


def muted(seconds: float, *more: tuple) -> Script:
    """A run whose logs cannot be read from a moment before its end on."""
    return sorted([*STARTS, *ENDS, (29, "mute", seconds), *more], key=lambda each: each[0])


def test_a_success_that_no_log_shows_is_none_and_the_next_call_reads_it(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, muted(FOR_EVER))
    with pytest.raises(TrainyardError, match="has ended with an unknown result: the log of its pod") as refused:
        follower(tmp_path, cluster).follow("20261121T120000Z-0001", submitted=True)
    assert "mnist-chief-0-0-00001 on the node worker1 was not read" in refused.value.message
    assert "Run this again when that node answers" in refused.value.remedy
    assert (cluster.record["result"], cluster.record["why"]) == (
        "unknown",
        "the log of its pod mnist-chief-0-0-00001 on the node worker1 was not read",
    )
    cluster.mute(0)
    result = follower(tmp_path, cluster).follow("20261121T120000Z-0001", submitted=False)
    assert (result["result"], result["steps"], result["accuracy"]) == ("passed", 200, 0.95)
    assert cluster.record == result


def test_nodes_that_answer_again_soon_are_waited_for(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, muted(60))
    result = follower(tmp_path, cluster).follow("20261121T120000Z-0001", submitted=True)
    assert (result["result"], result["steps"]) == ("passed", 200)
    assert 89 <= cluster.clock.now <= 95


def test_what_somebody_has_kept_before_is_an_account_too(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [*STARTS, *ENDS])
    follower(tmp_path, cluster).follow("20261121T120000Z-0001", submitted=True)
    cluster.mute(FOR_EVER)
    result = follower(tmp_path, cluster).follow("20261121T120000Z-0001", submitted=False)
    assert (result["result"], result["steps"], result["accuracy"]) == ("passed", 200, 0.95)


def test_the_exit_code_of_a_program_of_others_is_enough(tmp_path: Path) -> None:
    run = training(logs={"claim": "training"}, topology="multi_worker", flags={})
    script = [(1, "start"), (2, "mute", FOR_EVER), (3, "exit", "worker-0", 0), (4, "end", "Completed")]
    cluster = Cluster(run, [*script, (5, "delete", "ps-0"), (5, "delete", "worker-1")])
    assert follower(tmp_path, cluster, run).follow("20261121T120000Z-0001", submitted=True)["result"] == "passed"


def test_once_the_pod_is_gone_the_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, muted(FOR_EVER, (31, "delete", "chief-0")))

    def run() -> Run:
        return Run(
            Api(cluster), TRAINING, Settings(str(tmp_path), isolation_probe=False), Progress(None), cluster.clock
        )

    with pytest.raises(TrainyardError, match="its pod mnist-chief-0-0-00001 on the node worker1 was deleted before"):
        run().plan().execute()
    assert cluster.clock.now < 60, "nobody waits for a pod that is gone"
    plan = run().plan(wait=False)
    plan.execute()
    assert plan.done[-1].startswith("Submit training mnist")
    args = cluster.objects[f"{SETS}/mnist"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert "--resume=auto" in args["containers"][0]["args"]


def test_a_metric_that_nobody_could_read_is_no_failure_yet(tmp_path: Path) -> None:
    judged = training(logs={"claim": "training"}, success={"metric": "accuracy", "at_least": 0.9}, flags={})
    cluster = Cluster(judged, muted(FOR_EVER))
    with pytest.raises(TrainyardError, match="unknown result"):
        follower(tmp_path, cluster, judged).follow("20261121T120000Z-0001", submitted=True)
    cluster.mute(0)
    assert follower(tmp_path, cluster, judged).follow("20261121T120000Z-0001", submitted=False)["result"] == "passed"
