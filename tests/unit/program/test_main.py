"""The program `trainyard` as it is called: from any folder, with its statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def call(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    # As `make env` has installed it, called by a link from elsewhere.
    program = cwd / "a folder" / "trainyard"
    program.parent.mkdir(exist_ok=True)
    if not program.exists():
        program.symlink_to(Path(sys.executable).with_name("trainyard"))
    environment = {**os.environ, **env}
    return subprocess.run([program, *arguments], cwd=cwd, env=environment, text=True, capture_output=True, check=False)


def test_help_names_the_commands(tmp_path: Path) -> None:
    done = call("--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(f"\n  {name}  " in done.stdout for name in ("console", "logs", "token", "trainings", "why"))


@pytest.mark.parametrize(
    ("arguments", "env", "status", "says"),
    [
        (["-i", "nowhere", "trainings"], {}, 2, "Error: There is no inventory nowhere."),
        (["trainings"], {"TRAINYARD_INVENTORY": "neither"}, 2, "Error: There is no inventory neither."),
        (["training"], {}, 2, "No such command 'training'"),
        (["logs"], {}, 2, "Missing argument 'RUN'"),
    ],
)
def test_wrong_calls(tmp_path: Path, arguments: list[str], env: dict[str, str], status: int, says: str) -> None:
    done = call(*arguments, cwd=tmp_path, **env)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


def test_a_site_that_is_not_there_yet_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    variables = tmp_path / "site" / "group_vars" / "all.yml"
    variables.parent.mkdir(parents=True)
    variables.write_text(f"site_dir: {tmp_path}/state\ncontrol_plane_kubeconfig: '{{{{ site_dir }}}}/kubeconfig'\n")
    (tmp_path / "site" / "hosts.yml").write_text("all: {}\n")
    done = call("-i", "site", "trainings", cwd=tmp_path)
    assert done.returncode == 2
    assert f"There is no kubeconfig {tmp_path}/state/kubeconfig. It is written when" in done.stderr
    assert "Traceback" not in done.stderr


def test_completion_is_a_script_for_the_shell(tmp_path: Path) -> None:
    done = call("completion", "bash", cwd=tmp_path)
    assert "_TRAINYARD_COMPLETE=bash_complete" in done.stdout
    completed = call(cwd=tmp_path, _TRAINYARD_COMPLETE="bash_complete", COMP_WORDS="trainyard tr", COMP_CWORD="1")
    assert completed.stdout.splitlines() == ["plain,trainings"]
