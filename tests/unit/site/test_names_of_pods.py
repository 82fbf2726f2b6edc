"""Short names of a call that describe pods, time limits and success."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.short_names import Call, train_call, wrong

CATALOGUE: dict[str, dict[str, Any]] = {
    "own": {"description": "d", "kind": "training", "topology": "multi_worker", "requests": {"cpu": "250m"}},
}


def called(**given: Any) -> Call:
    call, problems = train_call(given, [], CATALOGUE)
    assert call, problems
    return call


def refused(**given: Any) -> str:
    call, problems = train_call(given, [], CATALOGUE)
    assert call is None
    return "; ".join(map(str, problems))


def test_options_of_pods_mean_the_same_for_each_role() -> None:
    wanted = called(
        workload="own", chief="1", ps=1, workers=2, cpu="100m", memory="16Gi", shm="1Gi", image="r/i:1"
    ).wanted
    of_each = {
        "limits": {"cpu": "100m", "memory": "16Gi"}, "requests": {"memory": "16Gi", "cpu": "100m"},
        "shm": "1Gi", "image": "r/i:1",
    }  # fmt: skip
    assert wanted["worker"] == {"replicas": 2, **of_each}
    assert wanted["chief"] == wanted["ps"] == {"replicas": 1, **of_each}


def test_a_request_below_the_limit_stays() -> None:
    assert called(workload="own", cpu="4").wanted["worker"] == {"limits": {"cpu": "4"}}
    assert called(workload="own", cpu="many").wanted["worker"] == {"limits": {"cpu": "many"}}, "refused with its role"


def test_time_limits() -> None:
    wanted = called(workload="own", timeout="3600", start_timeout=60).wanted
    assert (wanted["timeout"], wanted["start_timeout"]) == (3600, 60)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("accuracy >= 0.97", {"metric": "accuracy", "at_least": 0.97}),
        ("val_loss<=2e-1", {"metric": "val_loss", "at_most": 0.2}),
        ("exit_code", "exit_code"),
    ],
)
def test_a_condition_of_success(text: str, condition: Any) -> None:
    assert called(workload="own", success=text).wanted["success"] == condition


@pytest.mark.parametrize(
    "text", ["0.97", "accuracy > 0.9", "accuracy >= good", "accuracy >= nan", "accuracy >= inf", ">= 1", "{'a': 1}"]
)
def test_a_condition_that_is_none(text: str) -> None:
    assert 'success="accuracy >= 0.97"' in refused(workload="own", success=text)


def test_a_role_that_the_workload_does_not_have() -> None:
    assert "this workload has no evaluator" in refused(workload="own", evaluator=1)


def test_data_and_environment() -> None:
    wanted = called(workload="own", data="datasets", data_mount="/root/.keras", env={"MODE": "fast"}).wanted
    assert wanted["data"] == {"source": "claim", "claim": "datasets", "folder": "", "mount": "/root/.keras"}
    assert wanted["env"] == {"MODE": "fast"}
    assert called(workload="own", data_mount="/x").wanted["data"] == {"mount": "/x"}
    assert "env" in str(next(wrong({"env": "MODE=fast"}, "train")))
