"""What an inventory says, with the role's defaults, and which of its values are secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import site
from trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import json, sys
from trainyard.drift.settings import site_of
found = site_of(sys.argv[1:])
print(json.dumps([sorted(found.secrets), found.hosts, found.settings.state_dir, found.settings.max_items]))
"""


def test_the_defaults_are_those_of_the_role(tmp_path: Path) -> None:
    found = site(tmp_path).settings
    assert (found.mode, found.max_items, found.keep_reports_days) == ("report", 50, 400)
    assert (found.max_hosts, found.windows) == ("20%", [])


@pytest.mark.parametrize(("name", "value"), [("timeout", "soon"), ("enabled", "perhaps"), ("keep_mb", None)])
def test_a_value_of_another_type_is_named(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(TrainyardError, match=f"reprovision_{name} is"):
        site(tmp_path, **{name: value})


@pytest.mark.slow
def test_an_inventory_with_a_vault(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("of the vault")
    env = {**os.environ, "ANSIBLE_VAULT_PASSWORD_FILE": str(password), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    vault = [str(Path(sys.executable).with_name("ansible-vault"))]

    def run(*argv: str, cwd: Path = ROOT) -> str:
        return subprocess.run(argv, cwd=cwd, env=env, check=True, text=True, capture_output=True).stdout

    folder = tmp_path / "inventory" / "group_vars" / "all"
    folder.mkdir(parents=True)
    (tmp_path / "inventory" / "hosts.yml").write_text(
        "all: {children: {cluster: {children: {workers: {hosts: {w1: {}}}}}, other: {hosts: {x1: {}}}}}\n"
    )
    inline = run(*vault, "encrypt_string", "--name=one_secret", "canary-of-a-value")
    (folder / "site.yml").write_text(
        f"supply: vendors\nsite_dir: {tmp_path}/site\nreprovision_max_items: '{{{{ 40 + 2 }}}}'\n"
        f"control_plane_kubeconfig: x\n{inline}\nplain: no-secret\n"
    )
    (folder / "vault.yml").write_text("many: [{deep: canary-of-a-file}, 12345678, 42, w1, true]\n")
    run(*vault, "encrypt", str(folder / "vault.yml"))
    found = json.loads(run(sys.executable, "-c", PROGRAM, str(tmp_path / "inventory")))
    assert found == [["12345678", "canary-of-a-file", "canary-of-a-value"], ["w1"], f"{tmp_path}/site/reprovision", 42]
