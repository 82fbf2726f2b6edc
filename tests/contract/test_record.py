"""Tests that every object that a role applies is in the record from which drift and verdict know the site's objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from checkout import ROOT

NODES = "roles/device_plugin/tasks/label.yml"
"""Tasks that only set labels of nodes, which grant no access."""


def _tasks(tasks: Any) -> Iterator[dict[str, Any]]:
    for task in tasks or []:
        yield task
        for part in ("block", "rescue", "always"):
            yield from _tasks(task.get(part))


def test_what_a_role_applies_is_recorded_under_its_name() -> None:
    found = {}
    for path in sorted((ROOT / "roles").glob("*/tasks/**/*.yml")):
        for task in _tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            call = task.get("kube_apply") or {}
            if any(call.get(key) for key in ("definitions", "manifest", "afterwards")):
                found[str(path.relative_to(ROOT))] = call.get("record")
    assert found.pop(NODES) is None
    assert len(found) >= 6
    assert {path: record for path, record in found.items() if record != path.split("/")[1]} == {}
