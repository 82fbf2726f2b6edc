"""No task calls the API server through a proxy of its environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checkout import ROOT, read_yaml

DIRECT = "{{ lookup('site_proxy', direct=true) }}"
PROGRAMS = ("kubeadm", "kubectl")


def calls(tasks: list[dict[str, Any]], environment: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and environment of each task that calls the API server, also inside blocks and plays."""
    for task in tasks:
        own = str(task.get("environment", environment))
        for part in ("block", "rescue", "always", "pre_tasks", "tasks"):
            yield from calls(task.get(part) or [], own)
        argv = (task.get("ansible.builtin.command") or {}).get("argv") or [""]
        if argv[0] in PROGRAMS or any(name.startswith("kubernetes.core.") for name in task):
            yield str(task["name"]), own


def test_calls_of_the_api_have_no_proxy() -> None:
    found = [
        (str(path.relative_to(ROOT)), *call)
        for pattern in ("roles/*/tasks/*.yml", "playbooks/*.yml", "playbooks/tasks/*.yml")
        for path in sorted(ROOT.glob(pattern))
        for call in calls(read_yaml(path) or [])
    ]
    assert len(found) > 15
    assert [call for call in found if call[2] != DIRECT] == []
