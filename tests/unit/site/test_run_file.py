"""A run that a file describes in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.site.test_names_of_pods import CATALOGUE
from trainyard.site.short_names import Call, train_call

RUN = """
workload: own
run: lr
code: {folder: ./mnist}
command: python train.py
worker: {replicas: 2, env: {MODE: fast}}
success: {metric: val_loss, at_most: 0.2}
max_restarts: 1
"""


# Each list names the one before ten times.
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


def called(path: Path, **given: Any) -> Call:
    call, problems = train_call({"run_file": str(path), **given}, [{"workload": "own", "run": "lr"}], CATALOGUE)
    assert call, problems
    return call


def written(folder: Path, text: str) -> Path:
    path = folder / "our run.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_a_run(tmp_path: Path) -> None:
    assert called(written(tmp_path, RUN)).wanted == {
        "workload": "own", "run": "lr", "code": {"folder": "./mnist"}, "command": "python train.py",
        "worker": {"replicas": 2, "env": {"MODE": "fast"}}, "success": {"metric": "val_loss", "at_most": 0.2},
        "max_restarts": 1,
    }  # fmt: skip


def test_short_names_override_the_file(tmp_path: Path) -> None:
    given = {"run": "other", "workers": 4, "memory": "1Gi", "shell": "a && b"}
    wanted = called(written(tmp_path, RUN), **given).wanted
    assert (wanted["run"], wanted["shell"], "command" in wanted) == ("other", "a && b", False)
    assert wanted["worker"]["replicas"] == 4 and wanted["worker"]["env"] == {"MODE": "fast"}
    assert wanted["worker"]["limits"] == {"memory": "1Gi"}


def test_a_folder_names_the_run(tmp_path: Path) -> None:
    wanted = called(written(tmp_path, "{workload: own, code: {folder: ./mnist}, command: python a.py}")).wanted
    assert "run" not in wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not describe a run"),
        ("[{workload: own}]", "does not describe a run"),
        ("just text", "does not describe a run"),
        ("1: 2", "does not describe a run"),
        ("workload: [own", "is no YAML, line 1"),
        ("workload: !!python/object/apply:os.system [id]", "is no YAML"),
        ("[" * 20_000, "is no YAML"),
        ("# " + "x" * (1 << 20), "has more than 1 MiB"),
        (BOMB, "has more than 10000 values"),
        ("command: python a.py", "train.yml runs one workload of the catalogue"),
    ],
)
def test_files_that_describe_no_run(text: str, why: str, tmp_path: Path) -> None:
    call, problems = train_call({"run_file": str(written(tmp_path, text))}, [], CATALOGUE)
    assert call is None
    assert why in str(problems[0])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.yml"):
        call, problems = train_call({"run_file": str(path)}, [], CATALOGUE)
        assert call is None and "cannot be read" in str(problems[0])
    (tmp_path / "bytes.yml").write_bytes(b"\xff\xfe\x00")
    call, problems = train_call({"run_file": str(tmp_path / "bytes.yml")}, [], CATALOGUE)
    assert call is None and "it is no text" in str(problems[0])
