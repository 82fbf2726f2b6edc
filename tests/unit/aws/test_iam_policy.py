"""The documented policy allows what the modules really call, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.trainyard.aws.client import action_of

from tests.unit.aws.conftest import Site

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[3] / "docs" / "storage.md"
OF_OTHERS = {"ByEfs", "Inventory"}
"""Statements that are not about the modules."""


def documented() -> dict[str, set[str]]:
    """The actions of each statement on the page."""
    (text,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    statements = json.loads(text)["Statement"]
    return {
        each["Sid"]: {each["Action"]} if isinstance(each["Action"], str) else set(each["Action"]) for each in statements
    }


def everything(site: Site) -> None:
    """Each kind of change that the modules know, once."""
    tags: dict[str, Any] = {"tags": {"trainyard": "mine", "a": "1"}}
    rules = {"transition_to_ia": "AFTER_7_DAYS"}
    system = {"creation_token": "mine", "lifecycle": rules, "backup": False, "require_tls": True, **tags}
    its_id = {"file_system_id": site.run("efs_file_system", **system)["file_system"]["id"]}
    less = {**system, "require_tls": False, "policy": {}, "throughput_mode": "elastic", "backup": True, "tags": {}}
    site.run("efs_file_system", **less, purge_tags=True)
    group = {"name": "mine-efs", "owner": "mine", "subnet_ids": site.subnets}
    made = site.run("efs_security_group", **group, sources=[site.nodes], **tags)["security_group"]["id"]
    site.run("efs_security_group", **group, sources=["10.1.0.0/16"], purge_rules=True, tags={"b": "2"}, purge_tags=True)
    target = {"subnet_id": site.subnets[0]}
    site.run("efs_mount_target", **its_id, targets=[{**target, "security_groups": [site.nodes]}])
    site.run("efs_mount_target", **its_id, targets=[{**target, "security_groups": [made]}])
    site.run("efs_access_point", **its_id, access_points=[{"name": "one", **tags}])
    site.run("efs_access_point", **its_id, access_points=[{"name": "one", "tags": {"b": "2"}}], purge_tags=True)
    site.run("efs_info")
    gone = {"state": "absent", **its_id, "confirm": its_id["file_system_id"]}
    site.run("efs_access_point", **gone)
    site.run("efs_mount_target", **gone)
    site.run("efs_security_group", state="absent", name="mine-efs", owner="mine")
    site.run("efs_file_system", **gone)


def test_the_policy_is_what_is_called(site: Site) -> None:
    everything(site)
    assert site.file_systems() == []
    allowed = set().union(*(actions for sid, actions in documented().items() if sid not in OF_OTHERS))
    assert {action_of(call.name) for call in site.proxy.calls} == allowed


def test_only_looking_is_allowed_without_a_tag() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (policy,) = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for statement in json.loads(policy)["Statement"]:
        looks = all(":Describe" in action for action in documented()[statement["Sid"]])
        bound = "trainyard" in str(statement.get("Condition"))
        assert looks or bound or statement["Sid"] in ("ByEfs", "MakeGroupInVpc"), statement["Sid"]
