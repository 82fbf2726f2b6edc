"""What a call of train.yml or train_stop.yml says of one run."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.short_names import Call, stop_call, strange, train_call, wrong
from trainyard.site.site_model import Option, Site

CATALOGUE: dict[str, dict[str, Any]] = {
    "mnist_ps": {"description": "a", "kind": "training", "flags": {"train_steps": 200, "batch_size": 20}},
    "script": {"description": "b", "kind": "training", "topology": "multi_worker"},
    "own": {"description": "d", "kind": "training", "topology": "multi_worker"},
    "alone": {"description": "c", "kind": "training", "topology": "single"},
}
LISTED = [
    {"workload": "mnist_ps", "train_steps": 2000, "worker": {"env": {"A": "1"}}},
    {"workload": "mnist_ps", "run": "endless", "train_steps": 0},
]
SITE = Site(options={"bundle_lock": Option()}, roles=frozenset({"workloads"}))


def called(**given: Any) -> Call:
    call, problems = train_call(given, LISTED, CATALOGUE)
    assert call, problems
    return call


def refused(**given: Any) -> str:
    call, problems = train_call(given, LISTED, CATALOGUE)
    assert call is None
    return "; ".join(map(str, problems))


def test_short_names_change_what_the_inventory_says_of_the_run() -> None:
    wanted = called(workload="mnist_ps", workers="4", ps=2, gpus=1, steps="50", batch_size=5).wanted
    assert wanted == {
        "workload": "mnist_ps", "run": "mnist-ps", "train_steps": 50, "batch_size": 5,
        "ps": {"replicas": 2}, "worker": {"env": {"A": "1"}, "replicas": 4, "gpus": 1},
    }  # fmt: skip


def test_a_number_of_pods_in_the_inventory_stays_beside_a_short_name_for_the_role() -> None:
    listed = [{"workload": "mnist_ps", "worker": 3}]
    call, problems = train_call({"workload": "mnist_ps", "gpus": 1}, listed, CATALOGUE)
    assert call and call.wanted["worker"] == {"replicas": 3, "gpus": 1}, problems


def test_a_text_in_the_inventory_where_a_mapping_belongs() -> None:
    call, problems = train_call({"workload": "mnist_ps"}, [{"workload": "mnist_ps", "flags": "s3cret"}], CATALOGUE)
    assert call is None
    assert [str(each) for each in problems] == [
        "flags of mnist-ps in workloads_trainings is a text: it must be a mapping, with keys of its own. Change it."
    ]


def test_another_name_is_another_run() -> None:
    assert called(workload="mnist_ps", run="wide").wanted == {"workload": "mnist_ps", "run": "wide"}


def test_a_run_of_the_inventory_needs_no_workload() -> None:
    assert called(run="endless", wait="false").wanted["train_steps"] == 0


@pytest.mark.parametrize(("workload", "role"), [("mnist_ps", "worker"), ("script", "worker"), ("alone", "chief")])
def test_gpus_are_for_the_role_that_computes(workload: str, role: str) -> None:
    assert called(workload=workload, run="r", gpus=2).wanted[role] == {"gpus": 2}


@pytest.mark.parametrize(
    ("data", "source"),
    [
        ("mine", {"source": "claim", "claim": "mine", "folder": ""}),
        ("reg/set:1", {"source": "image", "image": "reg/set:1"}),
        ("set@sha256:1", {"source": "image", "image": "set@sha256:1"}),
        ("import", {"source": "import"}),
        ("image", {"source": "image"}),
    ],
)
def test_data_is_a_source_of_the_entry_or_a_claim_or_an_image(data: str, source: dict[str, str]) -> None:
    assert called(workload="script", data=data).wanted["data"] == source


def test_code_is_a_folder() -> None:
    assert called(workload="script", code="./mine").wanted["code"] == {"folder": "./mine"}


def test_words_that_belong_to_no_name_are_refused() -> None:
    (problem,) = strange({"command": "python", "_raw_params": "worker.py"}, "train", SITE)
    assert 'is "worker.py": not a name with a value' in str(problem)


def test_how_a_run_is_done() -> None:
    call = called(workload="script", wait="no", resume="fresh", replace="script")
    assert (call.wait, call.resume, call.replace) == (False, "fresh", True)
    assert called(workload="script") == Call({"workload": "script", "run": "script"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "variable workload is missing: train.yml runs one workload of the catalogue. Use one of: alone, mnist_ps"),
        ({"workload": "mnist"}, 'variable workload is "mnist": not in the catalogue'),
        ({"workload": "script", "run": "endless"}, "workloads_trainings has it with the workload mnist_ps"),
        ({"workload": "script", "steps": 5}, "variable steps is 5: this workload's program has no such flag"),
        ({"workload": "alone", "ps": 1}, "variable ps is 1: this workload has no ps"),
        ({"run": "endless", "wait": "yes"}, "variable wait is True: a training with steps 0 never ends"),
        ({"workload": "script", "replace": "other"}, 'variable replace is "other": not the name of the run, "script"'),
    ],
)
def test_calls_that_cannot_be(given: dict[str, Any], said: str) -> None:
    assert said in refused(**given)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("worker", "Did you mean workers?"),
        ("step", "Did you mean steps?"),
        ("train_steps", "Did you mean steps?"),
        ("batchsize", "Did you mean batch_size?"),
        ("learning_rate", "Set it in workloads_trainings in the inventory"),
        ("worker_retries", "Set it in workloads_trainings in the inventory"),
    ],
)
def test_what_was_meant_as_a_short_name_is_refused(name: str, said: str) -> None:
    (problem,) = strange({name: "4"}, "train", SITE)
    assert said in str(problem)


@pytest.mark.parametrize("name", ["bundle_lock", "workloads_log_dir", "ansible_user", "__mine", "rack", "workers"])
def test_variables_of_the_inventory_pass(name: str) -> None:
    assert list(strange({name: "4"}, "train", SITE)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("workers", "many"), ("ps", -1), ("ps", True), ("wait", "maybe"), ("resume", "later"), ("run", ""), ("data", [1])],
)
def test_values_of_another_type(name: str, value: Any) -> None:
    (problem,) = wrong({name: value}, "train")
    assert str(problem).startswith(f"variable {name} is ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "variable run is missing"),
        ({"run": "wide"}, "variable confirm is missing"),
        ({"run": "wide", "confirm": "wild"}, 'variable confirm is "wild": not the name of the run, "wide"'),
    ],
)
def test_a_stop_has_to_be_confirmed(given: dict[str, str], said: str) -> None:
    (problem,) = stop_call(given)
    assert said in str(problem)


def test_a_confirmed_stop() -> None:
    assert list(stop_call({"run": "wide", "confirm": "wide"})) == []


@pytest.mark.parametrize(
    ("listed", "given", "wanted"),
    [
        ([], {"code": "./Mine_2"}, {}),
        ([], {"code": "./mine", "run": "wide"}, {"run": "wide"}),
        ([], {}, {"run": "own"}),
        # What the inventory says of the run that the folder names is below the call, as for any other name.
        ([{"run": "mine", "ps": 1}], {"code": "x/mine/"}, {"run": "mine", "ps": {"replicas": 1}}),
        ([{"code": {"folder": "/y/mine"}, "ps": 1}], {"code": "x/mine"}, {"ps": {"replicas": 1}}),
    ],
)
def test_a_folder_of_code_names_a_run_of_own(listed: list[dict], given: dict, wanted: dict) -> None:
    listed = [{"workload": "own", **each} for each in listed]
    call, problems = train_call({"workload": "own", **given}, listed, CATALOGUE)
    code = {"code": {"folder": given["code"]}} if "code" in given else {}
    assert call and call.wanted == {"workload": "own", **code, **wanted}, problems


def test_a_folder_without_a_name_is_refused_and_another_workload_keeps_its_own() -> None:
    said = refused(workload="own", code="/")
    assert said.endswith("so the run cannot be named after it. Set the name of the run with -e run=NAME.")
    assert called(workload="script", code="./mine").wanted["run"] == "script"
