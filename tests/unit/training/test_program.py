"""A program of a user under a name that its folder gave: another one does not go on with its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings import record
from trainyard.trainings.jobset import spec_hash
from trainyard.trainings.run import Run, Settings

RECORD = "/api/v1/namespaces/trainings/configmaps/mine-result"
CLAIM = "/api/v1/namespaces/trainings/persistentvolumeclaims/training"
BY_FOLDER = {"program": "1" * 64, "named": False}


def described(**changes: Any) -> Any:
    return training(name="mine", workload="own", topology="multi_worker", logs={"claim": "training"}, **changes)


def run(server: ApiServer, **changes: Any) -> Run:
    server.objects.setdefault(CLAIM, {"metadata": {"name": "training"}})
    return Run(Api(server), described(**changes), Settings(log_dir="/tmp", isolation_probe=False), Progress(None))


def submitted(result: str = "stopped", **changes: Any) -> ApiServer:
    server = ApiServer()
    record.keep(Api(server), described(**changes), {"name": "mine", "result": result})
    return server


@pytest.mark.parametrize("before", [{"program": "2" * 64, "named": False}, {"program": "2" * 64}, {}])
def test_another_program_under_the_name_of_a_folder_is_refused(before: dict[str, Any]) -> None:
    server = submitted(**before)
    with pytest.raises(TrainyardError, match="The run mine is recorded for another program") as refused:
        run(server, **BY_FOLDER).plan()
    assert "run=mine continues with the existing files" in refused.value.remedy
    assert "resume=fresh" in refused.value.remedy


@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [
        # The site names the run, or starts over; and a run without a folder is as it was.
        ({"program": "1" * 64}, {}),
        (BY_FOLDER, {"resume": "fresh"}),
        (BY_FOLDER, {"restart": True}),
        ({}, {}),
    ],
)
def test_who_names_the_run_or_starts_over_is_served(wanted: dict[str, Any], arguments: dict[str, Any]) -> None:
    server = submitted(program="2" * 64, named=False)
    steps = [step.what for step in run(server, **wanted).plan(**arguments).steps]
    assert any("Run training mine" in step for step in steps)


def test_the_same_program_goes_on_and_its_success_is_not_run_again() -> None:
    assert run(submitted(**BY_FOLDER), **BY_FOLDER).plan().changed
    server = submitted("passed", **BY_FOLDER)
    steps = [step.what for step in run(server, **BY_FOLDER).plan().steps]
    assert not [step for step in steps if "training mine" in step]


def test_a_success_from_before_there_was_a_note_stays_one(tmp_path: Path) -> None:
    server = submitted("passed")
    plan = run(server, program="1" * 64).plan()
    assert not [step.what for step in plan.steps if "training mine" in step.what]
    assert spec_hash(described()) == spec_hash(described(**BY_FOLDER))


def test_a_stop_leaves_the_note() -> None:
    server = submitted("running", **BY_FOLDER)
    record.change(Api(server), server.objects[RECORD], {"result": "stopped"})
    assert server.objects[RECORD]["metadata"]["annotations"]["trainyard.dev/program"] == "1" * 64
