"""Tests of the shipped inventories in unchanged form: they set only user settings, and invent no facts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT, read_yaml

INVENTORIES = sorted(path.parent for path in (ROOT / "inventories").glob("*/hosts.yml"))

PLACEHOLDERS = re.compile(r"an address for documentation|a name for documentation")

USERS_OWN = (
    ("192.0.2.", "10.1.0."),
    ("kubernetes.example.org", "10.1.0.10"),
)
"""Values that the user of a shipped inventory replaces."""


def play(inventory: Path, playbook: str, *flags: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("ansible-playbook")
    return subprocess.run(
        [str(program), "-i", str(inventory), str(ROOT / playbook), *flags],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def users_own(inventory: Path, folder: Path) -> Path:
    """Copy a shipped inventory as its README says, and set the values of its user."""
    mine = Path(shutil.copytree(inventory, folder / "mine"))
    text = (mine / "hosts.yml").read_text(encoding="utf-8")
    for ours, users in USERS_OWN:
        text = text.replace(ours, users)
    (mine / "hosts.yml").write_text(text, encoding="utf-8")
    return mine


def problems(found: subprocess.CompletedProcess[str]) -> list[str]:
    # Any user may inspect the lab, but only root may create it.
    lines = (found.stdout + found.stderr).splitlines()
    return [line for line in lines if line.startswith("  - ") and "not root" not in line]


def bundle_artefacts(inventory: Path) -> dict[str, dict[str, str]]:
    """Return artefacts in the form of the result of the role bundle, limited to those that the site's supply makes."""
    supply = read_yaml(inventory / "group_vars" / "all" / "supply.yml")["supply"]
    wanted = read_yaml(ROOT / "roles" / "bundle" / "vars" / "main.yml")["__bundle_artefacts_wanted"][supply]
    names = wanted or list(read_yaml(ROOT / "bundle.lock.yml")["artefacts"])
    return {
        name: {"path": f"/cache/{name}", "digest": f"sha256:{'0' * 64}", "kind": "image", "layout": "/cache"}
        for name in names
    }


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_is_valid_when_its_user_has_set_his_own(inventory: Path, tmp_path: Path) -> None:
    mine = users_own(inventory, tmp_path)
    found = play(mine, "playbooks/_validate.yml")
    assert not problems(found), "\n".join(problems(found))
    assert found.returncode == 0 or "not root" in found.stdout, found.stdout


SHOW_FOLDER = """
- import_playbook: VALIDATE
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "site_dir={{ site_dir }} kubeconfig={{ control_plane_kubeconfig }}"
"""


@pytest.mark.parametrize("inventory", [path for path in INVENTORIES if path.name != "lab"], ids=lambda path: path.name)
def test_its_folder_is_known_after_the_validation(inventory: Path, tmp_path: Path) -> None:
    """The validation adds a host that becomes the first one. It once had no folder, so that site.yml failed."""
    mine = users_own(inventory, tmp_path)
    (tmp_path / "show.yml").write_text(
        SHOW_FOLDER.replace("VALIDATE", str(ROOT / "playbooks/_validate.yml")), encoding="utf-8"
    )
    found = play(mine, str(tmp_path / "show.yml"))
    home = os.environ["HOME"]
    expected = f"site_dir={home}/.local/state/trainyard/mine kubeconfig={home}/.local/state/trainyard/mine/kubeconfig"
    assert expected in " ".join(found.stdout.split()), found.stdout


@pytest.mark.parametrize("inventory", [path for path in INVENTORIES if path.name != "lab"], ids=lambda path: path.name)
def test_its_placeholders_are_refused(inventory: Path) -> None:
    found = play(inventory, "playbooks/_validate.yml")
    assert found.returncode != 0
    refused = problems(found)
    text = (inventory / "hosts.yml").read_text(encoding="utf-8")
    expected = len(re.findall(r"ansible_host:", text)) + text.count(".example.org")
    assert len(refused) == expected, "\n".join(refused)
    assert all(PLACEHOLDERS.search(line) for line in refused), "\n".join(refused)


# Each takes at least fifteen seconds.
@pytest.mark.slow
@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_every_role_accepts_its_arguments(inventory: Path, tmp_path: Path) -> None:
    """Only the always tagged tasks run: fact gathering, on this machine, and the argument validation."""
    result = tmp_path / "bundle.json"
    result.write_text(json.dumps({"bundle_artefacts": bundle_artefacts(inventory)}), encoding="utf-8")
    # As JSON, because a path may contain a space.
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
    found = play(
        inventory, "site.yml", "--tags", "none", "--skip-tags", "validate", "-e", f"@{result}", "-e", json.dumps(here)
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr
    validated = set(re.findall(r"^TASK \[(\w+) : Validating arguments against arg spec", found.stdout, re.MULTILINE))
    assert {
        "base",
        "containerd",
        "kubernetes",
        "control_plane",
        "worker",
        "network",
        "metrics",
        "dashboard",
        "workloads",
        "verify",
    } <= validated
    assert "bundle" in validated


@pytest.mark.parametrize(
    ("inventory", "hosts"),
    [
        ("example", {"cp1", "worker1", "worker2"}),
        ("offline", {"mirror1", "cp1", "worker1", "worker2"}),
        ("lab", {"mirror1", "cp1", "worker1", "worker2"}),
    ],
)
def test_real_hosts_are_checked_before_the_first_change(inventory: str, hosts: set[str]) -> None:
    listed = play(ROOT / "inventories" / inventory, "site.yml", "--list-hosts").stdout
    plays = re.findall(
        r"play #\d+ \(.*?\): (.*?)\tTAGS.*?\n    pattern:.*\n    hosts \(\d+\):((?:\n      \S+)*)", listed
    )
    looking = [
        "Find the nodes that the lab creates later",
        "Check the hosts",
        "Compare the hosts",
        "Probe the ports between hosts",
        "Report the hosts",
        "Refuse unsuitable hosts",
    ]
    before = ["Validate the inputs", "Check the limit", "Take the locks of the site", *looking, "Check the cluster"]
    assert [name for name, _ in plays][:11] == [*before, "Prepare the artefacts"], listed
    assert set(plays[4][1].split()) == set(plays[8][1].split()) == hosts
