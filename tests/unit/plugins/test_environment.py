"""A playbook in a Python environment that reads no package, or another checkout's, ends before its first task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from plugins.callback.environment import problem


def test_this_environment_is_right() -> None:
    assert problem(str(ROOT / "src" / "trainyard" / "__init__.py")) == ""


@pytest.mark.parametrize(
    ("package", "named"),
    [
        (None, "does not have this checkout's package"),
        ("/srv/another/src/trainyard/__init__.py", "another checkout: /srv/another"),
    ],
)
def test_the_remedy_is_named(package: str | None, named: str) -> None:
    wrong = problem(package)
    assert named in wrong and f"Run make env in {ROOT}" in wrong


def test_a_playbook_ends_in_words(tmp_path: Path) -> None:
    """The environment of before the one package, and one that finds the package of another checkout."""
    package = tmp_path / "src" / "trainyard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    command = [sys.executable, "-m", "ansible", "playbook", "playbooks/_validate.yml", "-i", "inventories/lab"]
    environ = {**os.environ, "PYTHONPATH": str(package.parent)}
    run = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and "Traceback" not in run.stdout + run.stderr
    assert f"of another checkout: {package}" in run.stderr and "Run make env in" in run.stderr
    assert "PLAY [" not in run.stdout
