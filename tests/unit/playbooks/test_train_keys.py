"""train.yml with lines, conditions, variables and a run_file, as users call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.playbooks.test_train import call, checkout, play, site

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

__all__ = ["checkout"]
RUN = """
workload: own
run: lr
image: registry.example.org/mine@sha256:1111111111111111111111111111111111111111111111111111111111111111
command: python train.py
worker: {replicas: 2}
max_restarts: 1
"""


def test_options_that_reach_to_their_ends(checkout: Path, tmp_path: Path) -> None:
    shell = "python a.py n=5 --dir $LOG_DIR && exec python b.py"
    names = {"workload": "own", "run": "mine", "shell": shell, "success": "val_loss <= 0.2", "memory": "1Gi"}
    status, given, output = call(checkout, tmp_path, "train", **names)
    assert status == 0, output
    training = given["training"]
    assert training["success"] == {"metric": "val_loss", "at_most": 0.2}
    (worker,) = (role for role in training["roles"] if role["name"] == "worker")
    assert worker["command"] == ["/bin/sh", "-c", shell]
    assert worker["limits"]["memory"] == worker["requests"]["memory"] == "1Gi"


def test_a_run_file_and_variables_that_are_not_shown(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "our run.yml").write_text(RUN, encoding="utf-8")
    env = json.dumps({"env": {"KEY": "s3cret"}, "run_file": str(tmp_path / "our run.yml")})
    arguments = ["-e", env, "-e", "args=--epochs 3", "-vv", "-i", str(site(tmp_path))]
    status, touched, output = play(checkout, tmp_path, "playbooks/train.yml", *arguments)
    assert status == 0 and touched, output
    given = json.loads((tmp_path / "touched" / "training").read_text(encoding="utf-8"))["training"]
    assert (given["name"], given["max_restarts"]) == ("lr", 1)
    (worker,) = (role for role in given["roles"] if role["name"] == "worker")
    assert worker["env"] == {"KEY": "s3cret"}
    assert (worker["command"], worker["args"]) == (["python", "train.py"], ["--epochs", "3"])
    assert "s3cret" not in output


def test_a_command_for_a_shell_is_refused_before_anything(checkout: Path, tmp_path: Path) -> None:
    names = {"workload": "own", "run": "mine", "command": "python a.py && python b.py"}
    status, given, output = call(checkout, tmp_path, "train", **names)
    assert (status, given) == (2, {}), output
    assert "which only a shell understands" in " ".join(output.split())
