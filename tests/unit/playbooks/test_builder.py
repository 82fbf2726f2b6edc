"""The role bundle with a builder: this machine twice, as the controller and as the host that makes the artefacts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.unit.playbooks.runs import ROOT

# Several seconds for each run of the role.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ("gcc", "skopeo"))), reason="not installed: gcc or skopeo"),
]

SUDO = """#!/bin/sh
echo "sudo was called on the controller" >&2; exit 1
"""
LOCK = """schema: 1
artefacts:
  tool: {kind: c_program, version: "1.0", source: "project:roles/bundle/files/c/tool.c", program: tool}
"""
INSTALLED = """
from ansible.module_utils.basic import AnsibleModule
AnsibleModule({"packages": {"type": "list"}, "proxy": {"type": "dict"}}).exit_json()
"""
"""Stands for apt_packages: what the role installs is not for this machine."""


@dataclass
class Site:
    """A project with one recipe, a controller with a store of its own, and a builder `b1`."""

    folder: Path

    def __post_init__(self) -> None:
        project = self.folder / "project"
        for name, content in (
            ("bundle.lock.yml", LOCK),
            ("roles/bundle/files/c/tool.c", "int main(void) { return 0; }\n"),
            ("roles/bundle/files/go/toolchain.txt", ""),
        ):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(content, encoding="utf-8")
        (self.folder / "library").mkdir()
        # One that has built before asks for less room on the disk.
        (self.folder / "builder/go/build").mkdir(parents=True)
        (self.folder / "library/apt_packages.py").write_text(INSTALLED, encoding="utf-8")
        (self.folder / "sudo").write_text(SUDO, encoding="utf-8")
        (self.folder / "sudo").chmod(0o755)
        plays = yaml.safe_load((ROOT / "playbooks/supply.yml").read_text(encoding="utf-8"))
        (play,) = [play for play in plays if play["name"] == "Prepare the artefacts"]
        (self.folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")

    def run(self, path: str = os.environ["PATH"], name: str = "b1", **builder: object) -> tuple[int, str]:
        """Run the play of supply.yml; status and output, on one line."""
        there = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
        there |= {"bundle_cache_dir": str(self.folder / "builder"), **builder}
        variables = {
            "supply": "vendors",
            "ansible_become_exe": str(self.folder / "sudo"),
            "bundle_project": str(self.folder / "project"),
            "bundle_artefacts_wanted": ["tool"],
            "bundle_builder": name,
        }
        inventory = {"all": {"vars": variables, "children": {"builders": {"hosts": {"b1": there}}}}}
        (self.folder / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")
        done = subprocess.run(
            [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.yml", "play.yml"],
            cwd=self.folder,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_LIBRARY": f"{self.folder}/library:{ROOT}/library",
                "ANSIBLE_NOCOLOR": "1",
                # Root need not become root, unless this says so.
                "ANSIBLE_BECOME_ALLOW_SAME_USER": "1",
                "HOME": str(self.folder / "home"),
                "PATH": path,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    @property
    def cache(self) -> Path:
        return self.folder / "home/.cache/trainyard"

    @property
    def delivered(self) -> list[str]:
        return [path.name.partition("-")[0] for path in (self.cache / "artefacts").glob("*")]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    before = set(Path("/var/tmp").glob("trainyard-bundle-*"))
    yield Site(tmp_path)
    assert set(Path("/var/tmp").glob("trainyard-bundle-*")) <= before, "the builder's folder is removed in every case"
    assert not (tmp_path / "home/.cache/trainyard/delivered").exists()


def test_made_there_brought_here_and_not_again(site: Site) -> None:
    status, output = site.run()
    assert status == 0, output
    assert site.delivered == ["tool"]
    assert (site.folder / "builder/artefacts" / next((site.cache / "artefacts").iterdir()).name / "tool").exists()
    status, output = site.run(ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    assert status == 0, output
    assert "changed=0" in output and "localhost -> b1" not in output, "what is there needs no builder"


def test_without_a_builder_the_controller_uses_sudo(site: Site) -> None:
    status, output = site.run(name="")
    assert status == 2 and "sudo was called on the controller" in output, output


def test_a_builder_that_does_not_answer_is_named(site: Site) -> None:
    status, output = site.run(ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    assert status == 2, output
    assert "b1 (bundle_builder) is unreachable" in output and "Repair it, or set another bundle_builder" in output


def test_a_controller_without_skopeo_is_refused_before_anything_is_made(site: Site, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "tar", "python3", "gcc", "setpriv"):
        (programs / name).symlink_to(str(shutil.which(name)))
    status, output = site.run(path=str(programs))
    assert status == 2, output
    assert "skopeo, which packs images for the nodes, is not installed" in output
    assert not site.cache.exists() and not (site.folder / "builder/artefacts").exists()


def test_what_fails_there_is_named_and_leaves_nothing(site: Site) -> None:
    (site.folder / "project/roles/bundle/files/c/tool.c").write_text("no program", encoding="utf-8")
    status, output = site.run()
    assert status == 2, output
    assert "The artefact tool cannot be made: gcc" in output
    assert site.delivered == []
