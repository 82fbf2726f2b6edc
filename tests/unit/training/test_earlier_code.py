"""An upgrade of the project changes the image of its own code: runs that are done stay done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.training.test_plan import JOBSET, RECORD, Site, training
from trainyard.trainings.jobset import run_object, spec_hash
from trainyard.trainings.model import Training
from trainyard.trainings.record import submitted
from trainyard.trainings.run import as_it_ran, code_of

OLD, NEW = "mirror:8443/trainyard/code:old", "mirror:8443/trainyard/code:new"
COMPLETED = {"status": {"terminalState": "Completed"}}


def run(code: str = NEW, **change: Any) -> Training:
    return training("worker1", code=code, **change)


def live(of: Training, **status: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(run_object(of, "20261127T120000Z-0000"))), **status}


def site(of: Training, *, there: dict[str, Any] | None, result: dict[str, Any] | None = None) -> Site:
    made = Site("worker1", recorded=spec_hash(of), result=result or {"result": "passed"})
    if there:
        made.objects[JOBSET] = there
    return made


def steps(cluster: Site, wanted: Training, **how: Any) -> list[str]:
    return [step.what for step in cluster.run(wanted).plan(**how).steps]


def test_a_finished_run_is_not_repeated_by_a_release() -> None:
    assert steps(site(run(OLD), there=live(run(OLD), **COMPLETED)), run()) == []


def test_a_running_run_is_left_unchanged_by_the_next_release() -> None:
    """As one with another description: a converge does not wait for it, and does not end it."""
    cluster = Site("worker1")
    cluster.objects[JOBSET] = live(run(OLD))
    one = cluster.run(run())
    assert one.plan().steps == [] and "left unchanged" in one.left_alone
    assert len(one.plan(may_end=True).steps) == 1


def test_a_record_without_its_object_names_the_code() -> None:
    recorded = submitted(run(OLD), "20261127T120000Z-0000") | {"result": "passed"}
    assert steps(site(run(OLD), there=None, result=recorded), run()) == []
    # Records of before name none.
    assert len(steps(site(run(OLD), there=None), run())) == 1


def test_the_record_keeps_the_hash_of_what_ran() -> None:
    cluster = site(run(OLD), there=live(run(OLD), **COMPLETED))
    plan = cluster.run(run(description_hash="in other words")).plan()
    for step in plan.steps:
        step.act()
    annotations = cluster.objects[RECORD]["metadata"]["annotations"]
    assert annotations["trainyard.dev/spec-hash"] == spec_hash(run(OLD))


@pytest.mark.parametrize("change", [{"timeout": 901}, {"flags": {"train_steps": 400}}, {"program": "ab" * 32}])
def test_another_run_is_repeated(change: dict[str, Any]) -> None:
    """A folder of code of the user's own is what the run is."""
    old = run(OLD, **({"program": "ab" * 32} if "program" in change else {}))
    assert len(steps(site(old, there=live(old, **COMPLETED)), run(**change))) == 1


def test_asked_for_again_it_has_the_new_code() -> None:
    cluster = site(run(OLD), there=live(run(OLD), **COMPLETED))
    plan = cluster.run(run()).plan(restart=True)
    assert plan.after["run of mnist"]["hash"] == spec_hash(run())


def test_a_failed_run_is_repeated_with_the_new_code() -> None:
    cluster = Site("worker1")
    cluster.objects[JOBSET] = live(run(OLD), status={"terminalState": "Failed"})
    plan = cluster.run(run()).plan()
    assert plan.after["run of mnist"]["hash"] == spec_hash(run())


@pytest.mark.parametrize(
    "runner",
    [None, {}, {"spec": 1}, {"spec": {"replicatedJobs": [1]}}, {"spec": {"template": {"spec": {"volumes": "code"}}}}],
)
def test_objects_of_other_forms_have_no_code(runner: Any) -> None:
    assert code_of(runner) == ""


def test_an_invented_code_makes_no_run_done() -> None:
    assert as_it_ran(run(), ["ab" * 32], [OLD, "", "\ud800"]) == run()
    assert as_it_ran(run(), [None], [OLD]) == run()
