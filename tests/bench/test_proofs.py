"""Tests of `make proof` programs: their runs are valid, and their checks can fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bare
import catalogue
import evaluator
import gpu_jobs
import inputs
import pytest
import shared_runs
import stand
import wide
from timed import BenchError

from trainyard.site.short_names import train_call
from trainyard.trainings.resolve import resolve_all

IMAGES = {name: {"digest": f"sha256:{'0' * 64}"} for name in ("image_tensorflow", "image_workloads", "image_mnist")}
ENTRIES = {
    str(entry["run"]): entry
    for entry in (
        *(bare.ENTRY, wide.ENTRY, evaluator.JUDGED, evaluator.LOADED, evaluator.WRITTEN, evaluator.READ),
        *(
            shared_runs.LONGER,
            shared_runs.on("worker2", shared_runs.JUDGED),
            shared_runs.on("worker1", shared_runs.RATE),
        ),
    )
}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_run_that_is_asked_for_can_be(name: str) -> None:
    known = inputs.read_catalogue([stand.CATALOGUE])
    call, problems = train_call({"run": name}, [ENTRIES[name]], known)
    assert not problems
    site = inputs.Defaults("registry/trainyard", IMAGES, {"claim": "training"}, archives="https://mirror/files")
    (resolved,) = resolve_all([call.wanted], known)
    described = resolved.bound(site)
    assert described["name"] == name


def test_a_call_names_the_run_once_and_keeps_words_whole() -> None:
    words = stand.call({"run": "a", "workload": "own"}, command="python main.py")
    assert words[0::2] == ["-e"] * 3
    assert words[3::2] == ["run=a", "command=python main.py"]
    assert stand.call(workload="notebook") == ["-e", "workload=notebook"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("bare", "catalogue", "commits", "compare", "drills", "evaluator", "gpu_image", "gpu_jobs", "notebook"),
        *(
            "drift",
            "kills",
            "red_network",
            "red_operator",
            "red_program",
            "schedule",
            "shared",
            "why",
            "why_together",
            "wide",
        ),
    ],
)
def test_every_program_starts(name: str) -> None:
    program = Path(__file__).with_name(f"{name}.py")
    said = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 0 and "usage:" in said.stdout, said.stderr


def pod(name: str, phase: str, *messages: str) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "False", "message": each} for each in messages]
    return {"metadata": {"name": name}, "status": {"phase": phase, "conditions": conditions}}


WHOLE = {
    "result": "no_bound",
    "steps": wide.STEPS,
    "released": True,
    "roles": {f"worker-{index}": 42 for index in range(wide.PODS)},
}


def test_a_wide_run_is_good_when_it_has_all_its_steps_and_pods_and_holds_nothing() -> None:
    wide.require(WHOLE, [pod("a", "Succeeded"), pod("b", "Failed")])
    assert wide.waiting([pod("a", "Running"), pod("b", "Pending", "0/3 nodes")]) == ["b Pending 0/3 nodes"]


@pytest.mark.parametrize(
    ("kept", "left", "why"),
    [
        ({"steps": 199}, [], "step 199 of 200"),
        ({"result": "failed"}, [], "ended with failed"),
        ({"roles": {}}, [], "0 pods"),
        ({}, [pod("a", "Running")], "resources after the end: a"),
        ({"released": False}, [], "by the record"),
    ],
)
def test_a_wide_run_fails_otherwise(kept: Mapping[str, Any], left: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(BenchError, match=why):
        wide.require({**WHOLE, **kept}, left)


def judged(*scores: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"event": "evaluate", "step": step, "accuracy": accuracy} for step, accuracy in scores]


CHIEF = judged((600, 0.97))
JUDGED = judged((100, 0.9), (300, 0.98), (600, 0.97))
FILES = [
    "best/ckpt-300.index",
    "attempts/x/train/events.out.tfevents.1.chief.1",
    "attempts/x/eval/events.out.tfevents.1.evaluator.1",
]


def test_an_evaluator_judges_beside_and_keeps_the_best() -> None:
    evaluator.require_judged(CHIEF, JUDGED)
    evaluator.require_best({"best_step": 300}, JUDGED, FILES)


@pytest.mark.parametrize(
    ("chief", "beside", "why"),
    [
        ([*judged((100, 0.9)), *CHIEF], JUDGED, "at step 100"),
        (CHIEF, JUDGED[:2], r"judged \[100, 300\]"),
        (CHIEF, judged((100, 0.9), (100, 0.9), (600, 0.9)), "judged"),
        (CHIEF, [], "judged"),
    ],
)
def test_an_evaluator_that_leaves_it_to_the_chief_fails(
    chief: list[dict[str, Any]], beside: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(BenchError, match=why):
        evaluator.require_judged(chief, beside)


@pytest.mark.parametrize(("best", "files"), [(600, FILES), (300, FILES[1:]), (300, FILES[:2])])
def test_what_is_kept_must_be_the_best_and_be_there(best: int, files: list[str]) -> None:
    with pytest.raises(BenchError):
        evaluator.require_best({"best_step": best}, JUDGED, files)


@pytest.mark.parametrize(
    ("ratios", "met"), [([0.96, 0.98, 0.99], True), ([0.9, 0.95, 0.96], False), ([0.9, 0.95, 1.01], True)]
)
def test_a_ratio_is_met_by_its_median_or_by_a_range_that_holds_one(ratios: list[float], met: bool) -> None:
    assert bare.verdict(ratios) is met


def test_two_that_had_other_cpus_or_threads_are_not_compared() -> None:
    one = {"cpus": [0, 1], "threads": {"OMP_NUM_THREADS": "2"}, "tensorflow": "2.21.0"}
    bare.require_equal(one, dict(one))
    with pytest.raises(BenchError, match="threads"):
        bare.require_equal(one, {**one, "threads": {"OMP_NUM_THREADS": "1"}})


def test_an_aim_is_for_the_median() -> None:
    assert catalogue.Aim(4.0).row("a", [3.0, 3.9, 9.0]) == ["a", "3.9 s (3.0 to 9.0)", "3", "at most 4 s"]
    assert catalogue.Aim(4.0).row("a", [3.0, 4.1, 9.0])[-1] == "at most 4 s, missed"
    assert catalogue.Aim(0.96, at_least=True, unit="", digits=4).met([0.95, 0.961, 0.97])
    assert catalogue.Aim().met([100.0])
    ratio = catalogue.Aim(0.98, at_least=True, ratio=True)
    assert ratio.met([0.9, 0.95, 1.01]) and not ratio.met([0.9, 0.95, 0.97]) and ratio.met([0.98, 0.985, 0.99])


def test_a_job_by_hand_is_the_same_pod_without_what_the_cluster_added() -> None:
    labels = {"trainyard.dev/run": "a", "job-name": "a", "batch.kubernetes.io/controller-uid": "1"}
    spec = {"selector": {}, "backoffLimit": 6, "template": {"metadata": {"labels": labels}, "spec": {"a": 1}}}
    again = gpu_jobs.copied({"metadata": {"name": "a", "uid": "1"}, "spec": spec})
    assert again["metadata"] == {"name": "a", "namespace": "trainings"}
    assert again["spec"]["backoffLimit"] == 6 and "selector" not in again["spec"]
    assert again["spec"]["template"] == {"metadata": {"labels": {"trainyard.dev/run": "a"}}, "spec": {"a": 1}}


def test_a_job_that_failed_is_not_measured() -> None:
    def job(kind: str) -> dict[str, Any]:
        return {"status": {"conditions": [{"type": kind, "status": "True"}]}}

    assert gpu_jobs.complete(job("Complete"))
    assert not gpu_jobs.complete(job("Suspended"))
    with pytest.raises(BenchError):
        gpu_jobs.complete(job("Failed"))
