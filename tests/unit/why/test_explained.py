"""The answer in the error of a training, in its record, and in the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from tests.unit.training.scripted import Cluster
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.trainings.follow import Follower, Settings
from trainyard.verify import training_checks as verify_training
from trainyard.verify.observation import RunSeen, Wanted
from trainyard.why.judge import explained

TRAINING = training(logs={"claim": "training"})
REFUSED = {"event": "error", "code": 2, "message": "batch_size is 0"}
SCRIPT = [
    (1, "start"),
    (2, "say", "chief-0", REFUSED),
    (2, "exit", "chief-0", 2),
    (3, "end", "Failed", "FailJobSetFailurePolicyAction", "jobset failed"),
]


def failure(folder: Path, **settings: Any) -> tuple[TrainyardError, Cluster]:
    cluster = Cluster(TRAINING, SCRIPT)
    follower = Follower(
        Api(cluster), TRAINING, Settings(str(folder), isolation_probe=False, **settings), print, cluster.clock
    )
    with pytest.raises(TrainyardError) as caught:
        follower.follow("20261121T120000Z-0001", submitted=True)
    return caught.value, cluster


def test_the_error_of_a_training_says_why(tmp_path: Path) -> None:
    error, cluster = failure(tmp_path, explain=explained)
    assert "\ncause     refused_input  it refuses its input\n" in error.message
    assert "\nevidence  log            batch_size is 0\n" in error.message
    assert cluster.record["cause"]["findings"][0]["code"] == "refused_input"


def test_without_an_explanation_the_error_is_the_same(tmp_path: Path) -> None:
    error, cluster = failure(tmp_path)
    assert "exit codes" in error.message and "cause" not in error.message
    assert "cause" not in cluster.record


def test_the_verdict_names_the_cause_that_is_on_record(tmp_path: Path) -> None:
    _, cluster = failure(tmp_path, explain=explained)
    seen = RunSeen(cluster.record, None, [], [], [])
    check = verify_training.training(Wanted(name="mnist", namespace="trainings", topology="parameter_server"), seen)
    assert check.detail.endswith("; refused_input: it refuses its input (change what it names in workloads_trainings)")


@pytest.mark.parametrize("cause", [None, 5, {"findings": []}, {"findings": [5]}, {"findings": [{"code": 5}]}])
def test_the_verdict_takes_no_record_at_its_word(cause: Any) -> None:
    seen = RunSeen({"result": "failed", "why": "bad", "cause": cause}, None, [], [], [])
    check = verify_training.training(Wanted(name="m", namespace="t", topology="single"), seen)
    assert check.detail == "m failed: bad"


def test_what_cannot_be_read_is_no_error_of_its_own() -> None:
    assert explained(Api(lambda *_: (0, "connection refused")), "mnist", "trainings") == ("", {})
    assert explained(Api(ApiServer()), "mnist", "trainings") == ("", {})
