"""From the plan to the end: submission, what it replaces, and removal, on a cluster that follows a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.samples import training
from tests.unit.training.scripted import BEGIN, SETS, SPACE, Cluster
from tests.unit.training.test_follow import ENDS, STARTS
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings.follow import Settings
from trainyard.trainings.run import Run
from trainyard.trainings.stop import Stop

TRAINING = training(logs={"claim": "training"})
OTHER = training(logs={"claim": "training"}, train_steps=400)


def run(cluster: Cluster, tmp_path: Path) -> Run:
    settings = Settings(str(tmp_path), isolation_probe=False)
    return Run(Api(cluster), TRAINING, settings, Progress(None), cluster.clock)


def test_a_run_is_submitted_followed_and_on_record(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [*STARTS, *ENDS], there=False)
    one = run(cluster, tmp_path)
    one.plan().execute()
    assert (one.result["result"], cluster.record["result"]) == ("passed", "passed")
    assert one.result["attempt"] == cluster.record["attempt"] != "20261121T120000Z-0001"
    assert run(cluster, tmp_path).plan().steps == [], "its success is on record"


def test_a_run_that_goes_on_is_followed_and_not_submitted(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [*STARTS, *ENDS])
    one = run(cluster, tmp_path)
    one.plan().execute()
    assert (one.result["result"], one.result["attempt"]) == ("passed", "20261121T120000Z-0001")
    assert not any(call.startswith("POST") for call in cluster.calls)


class Probed(Cluster):
    """The pods of a repeated probe run at once; what the stranger saw is in its log."""

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        answer = super().__call__(method, path, query, body, kind)
        if method == "PATCH" and path.startswith(f"{SPACE}/pods/"):
            self.objects[path]["status"] = {"phase": "Running", "podIP": "10.0.0.7"}
        return answer

    def _log(self, path: str, asked: dict[str, str]) -> tuple[int, str]:
        if path == f"{SPACE}/pods/mnist-target/log":
            lines = [{"event": "connected", "time": time} for time in (BEGIN, BEGIN + 9)]
        elif path == f"{SPACE}/pods/mnist-stranger/log" and f"{SPACE}/pods/mnist-target" in self.objects:
            seen = {"target": "timeout", "control": "connected"}
            at = {"detail": "10.0.0.7", "begin": BEGIN + 1, "end": BEGIN + 2}
            lines = [{"target": name, "outcome": outcome, **at} for name, outcome in seen.items()]
        else:
            return super()._log(path, asked)
        return 200, "".join(f"{json.dumps(line)}\n" for line in lines)


@pytest.mark.parametrize("begin", [0, 100])
def test_one_call_finds_out_the_isolation_of_a_run_that_nobody_has_followed(tmp_path: Path, begin: float) -> None:
    cluster = Probed(TRAINING, [*STARTS, *ENDS])
    while cluster.clock.now < begin:
        cluster.clock.sleep(1)
        cluster._play()
    one = Run(Api(cluster), TRAINING, Settings(str(tmp_path)), Progress(None), cluster.clock)
    one.plan().execute()
    assert (one.result["result"], one.result["isolation"]["stranger_blocked"]) == ("passed", True)
    assert cluster.record == one.result
    again = Run(Api(cluster), TRAINING, Settings(str(tmp_path)), Progress(None), cluster.clock)
    assert again.plan().steps == []
    assert [path for path in cluster.objects if "stranger" in path or "target" in path] == []


def test_a_run_of_another_description_is_ended_only_when_that_is_said(tmp_path: Path) -> None:
    cluster = Cluster(OTHER, [*STARTS, (500, "vanish")], grace=20.0)
    one = run(cluster, tmp_path)
    one.plan().execute()
    assert "is running with another description" in one.left_alone
    assert f"DELETE {SETS}/mnist" not in cluster.calls
    one = run(cluster, tmp_path)
    one.plan(may_end=True, wait=False).execute()
    assert cluster.clock.now >= 20.0, "it had its time to save"
    assert cluster.record["attempt"] != "20261121T120000Z-0001"


def test_a_run_that_does_not_end_for_another_is_named(tmp_path: Path) -> None:
    cluster = Cluster(OTHER, STARTS, grace=1000.0)
    with pytest.raises(WaitError, match="what is left of the run mnist to be gone; last state: JobSet trainings/mnist"):
        run(cluster, tmp_path).plan(may_end=True).execute()
    assert 115 < cluster.clock.now < 125


def test_a_run_whose_pods_may_take_ten_minutes_to_save_has_them(tmp_path: Path) -> None:
    patient = training(logs={"claim": "training"}, train_steps=400, grace=600)
    cluster = Cluster(patient, STARTS, grace=500.0)
    run(cluster, tmp_path).plan(may_end=True, wait=False).execute()
    assert cluster.clock.now >= 500.0
    stopped = Cluster(patient, STARTS, grace=500.0)
    stopped.clock.sleep(6)
    Stop(Api(stopped), "mnist", str(tmp_path), lambda _: None, stopped.clock).plan().execute()
    assert stopped.clock.now >= 506.0
    removed = Cluster(patient, STARTS, grace=500.0)
    run(removed, tmp_path).remove_plan().execute()
    assert f"{SETS}/mnist" not in removed.objects


def test_a_run_that_failed_goes_on_from_its_files(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, [*STARTS, (6, "exit", "chief-0", 3), (7, "end", "Failed", "FailedJobs", "no")])
    with pytest.raises(TrainyardError, match="FailedJobs"):
        run(cluster, tmp_path).plan().execute()
    assert cluster.record["result"] == "failed"
    again = run(cluster, tmp_path).plan(wait=False)
    assert again.steps[-1].what.startswith("Submit training mnist")
    again.execute()
    assert cluster.record["result"] == "running"


def test_a_removal_waits_until_everything_is_gone(tmp_path: Path) -> None:
    cluster = Cluster(TRAINING, STARTS, grace=15.0)
    plan = run(cluster, tmp_path).remove_plan()
    plan.execute()
    assert f"Delete JobSet {TRAINING.name}" in plan.done
    assert cluster.clock.now >= 15.0
    assert cluster.pods == [] and f"{SETS}/mnist" not in cluster.objects
    assert f"{SPACE}/configmaps/mnist-result" not in cluster.objects
    assert run(cluster, tmp_path).remove_plan().steps == []
