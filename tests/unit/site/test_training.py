"""One refusal a row: trainings that could never start, or never end well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainyard.site.site_model import Setting, Site
from trainyard.site.training_rules import TRAINING_RULES

LIMITS = {"cpu": "1", "memory": "1Gi"}
CATALOGUE = {
    "mnist_ps": {
        "description": "MNIST",
        "kind": "training",
        "topology": "parameter_server",
        "image": {"repository": "tensorflow", "artefact": "image_tensorflow"},
        "command": ["python"],
        "flags": {"train_steps": 200, "batch_size": 20, "learning_rate": 0.001, "accuracy_bound": 0},
        "limits": LIMITS,
        "worker": {"replicas": 2},
    },
    "own": {"description": "own", "kind": "training", "topology": "multi_worker", "limits": LIMITS},
}


def refusals(*wanted: dict[str, Any], **others: str) -> list[str]:
    settings = [
        Setting("workloads_trainings", [{"workload": "mnist_ps", **each} for each in wanted]),
        *(Setting(name, value) for name, value in others.items()),
    ]
    namespaces = frozenset({"kube-system", "jobset-system"})
    site = Site(settings=settings, catalogue=CATALOGUE, namespaces=namespaces)
    return [str(problem) for rule in TRAINING_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    ("training", "key", "fault", "remedy"),
    [
        (
            {"workload": "mnits_ps"},
            '.workload is "mnits_ps"',
            "not in the catalogue",
            "Did you mean mnist_ps? Use one of",
        ),
        ({"chief": 0}, ".chief.replicas is 0", "it must be 1", ""),
        ({"chief": {"replicas": 2}}, ".chief.replicas is 2", "it must be 1", ""),
        ({"ps": {"replicas": 0}}, ".ps.replicas is 0", "a whole number from 1 to 999", ""),
        ({"worker": {"replicas": 0}}, ".worker.replicas is 0", "a whole number from 1", ""),
        ({"evaluator": 1}, ".evaluator.replicas is 1", "needs shared storage", ""),
        ({"train_steps": -1}, ".train_steps is -1", "0 = until stopped", ""),
        ({"batch_size": 0}, ".batch_size is 0", "a whole number from 1", ""),
        ({"learning_rate": -0.1}, ".learning_rate is -0.1", "a number above 0", ""),
        ({"accuracy_bound": 90}, ".accuracy_bound is 90", "a fraction from 0", ""),
        ({"accuracy_bound": 0.9, "train_steps": 0}, ".accuracy_bound is 0.9", "without an end", ""),
        ({"worker": {"limits": {"memory": ""}}}, ".worker.limits.memory is ''", "must be a quantity", ""),
        ({"ps": {"limits": {"memory": "1 GB"}}}, ".ps.limits.memory is '1 GB'", "must be a quantity", ""),
        ({"tran_steps": 3}, ".tran_steps is 3", "no such key", "Did you mean train_steps?"),
        ({"name": "x"}, ".name is 'x'", "no such key", "Did you mean run?"),
        ({"strategy": "mirrored"}, ".strategy is 'mirrored'", "no such key", "Did you mean topology?"),
        ({"worker": {"limit": {}}}, ".worker.limit is set", "known keys are", "Did you mean limits?"),
        ({"topology": "ring"}, "topology", "value of topology must be one of", ""),
        ({"data": {"image": 5, "clam": "x"}}, "data.clam", "Supported parameters include", ""),
        ({"limits": "cpu"}, ".limits is a text", "it must be a mapping", ""),
        ({"worker": {"limits": ["cpu"]}}, ".worker.limits is a list", "it must be a mapping", ""),
        ({"run": "x-import"}, ".run is 'x-import'", "it must be another name", ""),
        ({"data": {"source": "import"}}, ".data.url is missing", "an import needs the http or https address", ""),
    ],
)
def test_refused(training: dict[str, Any], key: str, fault: str, remedy: str) -> None:
    found = refusals(training)[0]
    assert found.startswith("variable workloads_trainings[0]")
    assert key in found
    assert fault in found
    assert remedy in found


def test_all_faults_are_reported_together() -> None:
    found = refusals({"train_steps": -1, "batch_size": 0, "ps": 0, "kears": "keras3"}, {"run": "more", "port": 80})
    assert len(found) == 4 + 3  # the port is that of three roles


def test_two_runs_of_one_name_are_refused() -> None:
    (found,) = refusals({}, {"run": "other"}, {"run": "mnist-ps"})
    assert 'variable workloads_trainings[2].run is "mnist-ps": workloads_trainings[0] has it, too' in found


@pytest.mark.parametrize(
    ("training", "others"),
    [
        ({}, {}),
        ({"train_steps": 0}, {}),
        ({"train_steps": 2000, "accuracy_bound": 0.9, "batch_size": 20, "learning_rate": 0.001}, {}),
        # Values that are not given come from the catalogue, also inside the limits.
        ({"worker": {"limits": {"cpu": "500m"}}}, {}),
        ({"worker": {"gpus": 1}}, {}),
        ({"evaluator": 1}, {"storage_backend": "shared_path"}),
        ({"ps": 2, "worker": "3", "image": "example/other:1.0"}, {}),
    ],
)
def test_accepted(training: dict[str, Any], others: dict[str, str]) -> None:
    assert refusals(training, **others) == []


def test_no_value_of_an_environment_is_shown() -> None:
    found = refusals({"env": {"KEY": ["s3cret"]}, "worker": {"env": {"1": "s3cret"}}, "enw": {"KEY": "s3cret"}})
    assert len(found) > 3
    assert "s3cret" not in " ".join(found)


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "default", "jobset-system", "calico-system"])
def test_a_namespace_of_the_cluster_is_refused(namespace: str) -> None:
    found = refusals({"namespace": namespace})
    assert any(f'workloads_trainings[0].namespace is "{namespace}"' in text for text in found)


@pytest.mark.parametrize("path", ["/etc", "/var/lib/trainyard/trainings/../../..", "/var/lib/trainyard/trainings2"])
def test_a_folder_outside_the_one_for_logs_is_refused(path: str) -> None:
    found = refusals({"logs": {"node": "n", "path": path}}, workloads_logs_path="/var/lib/trainyard/trainings")
    assert any("outside workloads_logs_path" in text for text in found), found


def test_a_folder_inside_it_is_accepted() -> None:
    logs = {"node": "n", "path": "/var/lib/trainyard/trainings/mine"}
    assert refusals({"logs": logs}, workloads_logs_path="/var/lib/trainyard/trainings") == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("python main.py", []),
        ("python mian.py", ['.code is "mine": The command python mian.py starts mian.py', "Did you mean main.py?"]),
        ("python 'main.py", [".command is not a command line", "No closing quotation"]),
    ],
)
def test_code_without_the_file_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "main.py").write_text("print(1)\n", encoding="utf-8")
    found = refusals({"code": {"folder": "mine"}, "command": command})
    assert len(found) == bool(said), found
    assert all(part in found[0] for part in said), found


def test_code_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = refusals({"code": {"folder": "./mine"}})
    assert f'.code is "./mine": The code folder {tmp_path}/mine does not exist. Set the folder' in problem


def test_a_folder_of_code_whose_name_gives_the_run_none(tmp_path: Path) -> None:
    (tmp_path / "\u8bad").mkdir()
    (tmp_path / "\u8bad/main.py").write_text("pass", encoding="utf-8")
    mine = {"workload": "own", "image": "r/mine:1", "command": "python", "code": {"folder": str(tmp_path / "\u8bad")}}
    said = "; ".join(refusals(mine))
    assert "so the run cannot be named after it. Set the name of the run with the key run." in said
    assert refusals({**mine, "run": "mine"}) == []
