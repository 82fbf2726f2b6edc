"""kubectl on the controller: copied from the artefacts into the site's folder, as the user who runs the playbook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playbooks.runs import ROOT

# Seconds for each run of Ansible.
pytestmark = pytest.mark.slow

SUDO = """#!/bin/sh
echo "sudo was called on the controller" >&2; exit 1
"""
PROGRAM = b"#!/bin/sh\necho the locked one\n"


@dataclass
class Controller:
    """A controller with one artefact, and the tasks of the role control_plane that install it."""

    folder: Path

    def __post_init__(self) -> None:
        self.artefact = self.folder / "artefact"
        self.site = self.folder / "site"
        for each in (self.artefact, self.site):
            each.mkdir()
        (self.artefact / "kubectl").write_bytes(PROGRAM)
        (self.folder / "sudo").write_text(SUDO, encoding="utf-8")
        (self.folder / "sudo").chmod(0o755)
        role = ROOT / "roles/control_plane"
        tasks = yaml.safe_load((role / "tasks/kubeconfig.yml").read_text(encoding="utf-8"))
        (task,) = [each for each in tasks if each["name"] == "kubeconfig | Install kubectl on the controller"]
        variables = [str(role / "vars/main.yml")]
        play = {"hosts": "cp1", "gather_facts": False, "become": True, "vars_files": variables, "tasks": [task]}
        (self.folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")

    @property
    def installed(self) -> Path:
        return self.site / "bin/kubectl"

    def run(self, *options: str, made: dict[str, str] | None = None, **values: Any) -> str:
        """Run the tasks, which must succeed; the output on one line."""
        given = {"path": str(self.artefact)} if made is None else made
        variables = {
            "bundle_artefacts": {"kubectl": given},
            "ansible_become_exe": str(self.folder / "sudo"),
            "ansible_python_interpreter": sys.executable,
            **({"site_dir": str(self.site)} | values),
        }
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        done = subprocess.run(
            [program, "-i", "cp1,", "play.yml", "-e", json.dumps(variables), *options],
            cwd=self.folder,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_BECOME_ALLOW_SAME_USER": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        output = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == 0, output
        return output


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_it_is_planned_installed_and_not_installed_again(controller: Controller) -> None:
    assert "changed=2" in controller.run("--check")
    assert list(controller.site.iterdir()) == []
    assert "changed=2" in controller.run()
    assert controller.installed.read_bytes() == PROGRAM
    assert controller.installed.stat().st_mode & 0o777 == 0o755
    assert "changed=0" in controller.run()


def test_another_file_in_its_place_is_replaced_and_no_link_is_followed(controller: Controller) -> None:
    controller.installed.parent.mkdir(mode=0o700)
    own = controller.folder / "own"
    own.write_text("of the operator", encoding="utf-8")
    controller.installed.symlink_to(own)
    assert "changed=1" in controller.run()
    assert not controller.installed.is_symlink() and controller.installed.read_bytes() == PROGRAM
    assert own.read_text(encoding="utf-8") == "of the operator"
    # The same length, so that only the content differs.
    controller.installed.write_bytes(PROGRAM.replace(b"locked", b"forged"))
    assert "changed=1" in controller.run("--check", "--diff")
    assert "changed=1" in controller.run()
    assert controller.installed.read_bytes() == PROGRAM


@pytest.mark.parametrize(
    ("made", "values", "options"),
    [
        ({"version": "v1"}, {}, ()),
        ({"path": "/nonexistent"}, {}, ("--check",)),
        (None, {"bundle_artefacts": {}}, ()),
    ],
    ids=["an index has no path", "not made yet", "not wanted"],
)
def test_without_the_artefact_nothing_is_installed(
    controller: Controller, made: dict[str, str] | None, values: dict[str, Any], options: tuple[str, ...]
) -> None:
    assert "changed=0" in controller.run(*options, made=made, **values)
    assert list(controller.site.iterdir()) == []
