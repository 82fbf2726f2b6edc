"""Inventories as other people write them: each is accepted, or refused with its cause and remedy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playbooks.runs import ROOT

# A second for each run.
pytestmark = pytest.mark.slow

ROWS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "tests/zoo/inventories.yml").read_text(encoding="utf-8"))
ENDPOINT = {"control_plane_endpoint": "10.1.0.10:6443", "ansible_user": "ops"}


def written(row: dict[str, Any], folder: Path) -> Path:
    """Write the inventory of a row and return its folder, whose name has a space."""
    target = folder / "my site"
    shutil.copytree(ROOT / "inventories/example", target, ignore=shutil.ignore_patterns("hosts.yml", "README.md"))
    if "hosts" in row:
        groups = {name: {"hosts": hosts} for name, hosts in row["hosts"].items()}
        groups["cluster"] = {"children": dict.fromkeys(row["hosts"])}
        given = dict(row.get("variables", {}))
        everything = {"hosts": row.get("others", {}), "children": groups, "vars": {**ENDPOINT, **given.pop("all", {})}}
        for name, variables in given.items():
            groups[name]["vars"] = variables
        (target / "hosts.yml").write_text(yaml.safe_dump({"all": everything}), encoding="utf-8")
    for name, text in row.get("files", {}).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return target


@pytest.mark.parametrize("name", ROWS)
def test_an_inventory_of_the_zoo(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    argv = [program, "-i", str(written(row, tmp_path)), "playbooks/_validate.yml", *row.get("arguments", [])]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    found = " ".join((done.stdout + done.stderr).split())
    if row.get("refused"):
        assert done.returncode == 2 and re.search(row["refused"], found), found[-3000:]
        assert "nothing was touched" in found
    else:
        assert done.returncode == 0, found[-3000:]


def test_the_zoo_has_both_kinds() -> None:
    refused = [name for name, row in ROWS.items() if row.get("refused")]
    assert len(ROWS) >= 15 and min(len(refused), len(ROWS) - len(refused)) >= 5
