"""Tests that a new workload needs only its own files: one file in a folder is enough to run and judge it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from checkout import ROOT, read_yaml

from plugins.filter.resolved_trainings import bound_descriptions, resolved_trainings
from trainyard.bundle.lockfile import load, tree_files
from trainyard.site.rules import check
from trainyard.site.site_model import Setting, Site
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.jobset import run_object
from trainyard.trainings.objects import surroundings
from trainyard.trainings.resolve import resolve_all
from trainyard.trainings.site_images import TENSORBOARD, Defaults
from trainyard.trainings.spec import parse_training

OWN = {
    "description": "A user's script",
    "kind": "training",
    "topology": "multi_worker",
    "image": "registry.example.org/mine/script:1",
    "command": "python worker.py",
    "limits": {"cpu": "1", "memory": "1Gi"},
    "ps": 1,
    "worker": {"replicas": 2, "shm": "1Gi"},
    "success": {"metric": "score", "at_least": 0.5},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.yml").write_text(yaml.safe_dump(OWN), encoding="utf-8")
    return tmp_path


def test_a_workload_is_one_file(folder: Path) -> None:
    wanted = [{"workload": "script", "run": "mine", "worker": 3}]
    resolved = resolved_trainings(wanted, [str(folder)])
    (description,) = bound_descriptions(resolved, {"logs": {"claim": "training"}})
    training = parse_training(description)
    jobs = run_object(training, "first")["spec"]["replicatedJobs"]
    assert [(job["name"], job["template"]["spec"]["completions"]) for job in jobs] == [("ps", 1), ("worker", 3)]
    assert {each["kind"] for each in surroundings(training)} >= {"Namespace", "NetworkPolicy"}
    assert resolved[0]["images"] == [TENSORBOARD]
    run = resolved[0]["expected"]
    assert run.pop("description_hash") == description["description_hash"] != ""
    assert run == {"name": "mine", "namespace": "trainings", "topology": "multi_worker"}


def test_the_rules_of_a_site_know_it(folder: Path) -> None:
    def problems(**wanted: Any) -> list[str]:
        settings = [Setting("workloads_trainings", [{"workload": "script", **wanted}])]
        site = Site(settings=settings, catalogue=read_catalogue([folder]))
        return [str(each) for each in check(site) if "workloads_trainings" in str(each)]

    assert problems() == []
    assert "worker.replicas is 0" in problems(worker=0)[0]


def test_the_verdict_knows_bounds_of_programs_that_have_them() -> None:
    wanted = [{"workload": "mnist_ps", "accuracy_bound": 0.9}, {"workload": "mnist_ps", "run": "b", "stall_timeout": 9}]
    first, second = (each["expected"] for each in resolved_trainings(wanted, []))
    assert first.pop("description_hash") != second["description_hash"]
    assert first == {
        "name": "mnist-ps",
        "namespace": "trainings",
        "topology": "parameter_server",
        "train_steps": 200,
        "accuracy_bound": 0.9,
        "start_timeout": 300,
        "stall_timeout": 120,
    }
    assert (second["name"], second["accuracy_bound"], second["stall_timeout"]) == ("b", 0, 9)


@pytest.mark.parametrize(
    "more",
    [
        {"data": "import"},
        {"logs": {"path": "/srv/runs", "node": "worker1"}},
        {"logs": {"claim": "", "storage_class": "fast"}},
    ],
)
def test_the_verdict_asks_for_nothing_that_only_a_run_needs(more: dict[str, Any]) -> None:
    (run,) = resolved_trainings([{"workload": "mnist_ps", **more}], [])
    assert run["expected"]["name"] == "mnist-ps"


NEEDED = {"own": {"command": "python worker.py"}}
"""Values that a user must set for an entry."""


@pytest.mark.parametrize("name", sorted(read_catalogue([])))
def test_every_entry_of_ours_can_be_run(name: str) -> None:
    (resolved,) = resolve_all([{"workload": name, **NEEDED.get(name, {})}], read_catalogue([]))
    training = parse_training(resolved.bound(Defaults(known=False, logs={"claim": "c"})))
    assert run_object(training, "first")["metadata"]["annotations"]["trainyard.dev/workload"] == name


def _images(**more: Any) -> list[dict[str, str]]:
    """Return the images of all entries of the catalogue.

    :param more: keys added to each run.
    """
    names = sorted(read_catalogue([]))
    wanted = [{"workload": name, "run": f"r-{index}", **more} for index, name in enumerate(names)]
    found = [each for require_gpu in (True, False) for each in resolved_trainings(wanted, [], require_gpu)]
    return [image for each in found for image in each["images"]]


def test_artefacts_of_the_catalogue_are_in_the_lock() -> None:
    locked = yaml.load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["artefacts"]
    assert {image["artefact"] for image in _images(gpus=1)} >= {"image_tensorflow_gpu", "image_notebook_gpu"}
    for image in _images(gpus=1):
        assert locked[image["artefact"]]["reference"].split(":")[0] == f"trainyard/{image['repository']}"


def test_artefacts_of_trainings_are_made_for_every_site() -> None:
    """Artefacts of services, of GPUs, and rarely used ones are large, so they are only made for sites that list one."""
    catalogue = read_catalogue([])
    locked = read_yaml(ROOT / "bundle.lock.yml")["artefacts"]
    trainings = [{"workload": name} for name, entry in catalogue.items() if entry.get("kind") == "training"]
    resolved = resolved_trainings(trainings, [], require_gpu=False)
    needed = {image["artefact"] for each in resolved for image in each["images"]}
    made = set(read_yaml(ROOT / "roles/bundle/vars/main.yml")["__bundle_artefacts_wanted"]["vendors"])
    few = {name for name in needed if locked[name].get("on_demand")}
    assert few == {"image_speech"}
    assert needed - few <= made
    assert made.isdisjoint({*few, "image_notebook"})


@pytest.mark.parametrize(
    ("variables", "also"),
    [
        ({}, []),
        ({"workloads_trainings": [{"workload": "notebook"}]}, ["image_notebook"]),
        (
            {"workloads_trainings": [{"workload": "cnn_ps"}, {"workload": "notebook", "run": "nb"}]},
            ["image_tensorflow", "image_tensorboard", "image_workloads", "image_mnist", "image_notebook"],
        ),
        (
            {"workloads_trainings": [{"workload": "speech_gpu"}]},
            ["image_tensorflow_gpu", "image_tensorboard", "image_workloads", "image_speech"],
        ),
    ],
)
def test_what_a_site_lists_is_made_with_the_rest_of_it(variables: dict[str, Any], also: list[str]) -> None:
    loader = DataLoader()
    role: dict[str, Any] = {"groups": {}, "hostvars": {}}
    for file in ("vars/main.yml", "defaults/main.yml"):
        role |= loader.load_from_file(str(ROOT / "roles/bundle" / file), trusted_as_template=True)
    found = Templar(loader=loader, variables={**role, **variables}).template(role["bundle_artefacts_of_site"])
    assert sorted(found) == sorted(also)


def test_artefacts_of_the_catalogue_are_made_before_they_are_pushed() -> None:
    # The large artefacts for GPUs are made if the site lists a training with GPUs: `bundle_artefacts_of_site`.
    needed = {image["artefact"] for image in _images(gpus=0)}
    *_, play = read_yaml(ROOT / "playbooks/push.yml")
    (made,) = [task["vars"]["bundle_artefacts_wanted"] for task in play["tasks"] if "Build" in task["name"]]
    assert needed | {"image_console"} == set(made)


@pytest.mark.parametrize("name", [name for name, entry in read_catalogue([]).items() if entry.get("code")])
def test_the_program_of_an_entry_is_in_the_image_of_its_code(name: str) -> None:
    described = resolved_trainings([{"workload": name}], [])[0]["description"]
    artefact = read_catalogue([])[name]["code"]["artefact"]
    packed = ROOT / load(ROOT / "bundle.lock.yml")[artefact].recipe["folder"].removeprefix("project:")
    files = {str(path.relative_to(packed)) for path in tree_files(packed)}
    for role in described["roles"]:
        program = role["command"][role["command"].index("-m") + 1]
        assert f"{program.replace('.', '/')}.py" in files
