"""Tests that each back end of shared storage is one row of a table, with existing files and declared options."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import read_yaml

from trainyard.site.storage_rules import backends

KEYS = {"mount", "prepare", "check", "volume", "needs", "efs", "server", "driver", "deletes", "class"}


def test_the_specification_has_the_rows_of_the_table(root: Path) -> None:
    spec = read_yaml(root / "roles/storage/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(spec["storage_backend"]["choices"]) == {"", *backends()}


@pytest.mark.parametrize("name", backends())
def test_a_row_is_complete(root: Path, name: str) -> None:
    row, role = backends()[name], root / "roles/storage"
    assert row.keys() == KEYS and row["mount"] in ("owner", "efs_mount", "kubelet")
    files = [f"tasks/{row[key]}.yml" for key in ("prepare", "check") if row[key]]
    assert all((role / each).is_file() for each in (*files, f"templates/volumes/{row['volume']}.yaml.j2"))
    assert f"| `{name}` |" in (role / "README.md").read_text(encoding="utf-8")
