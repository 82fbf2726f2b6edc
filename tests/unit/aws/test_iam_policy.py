"""The documented policy allows what the modules really call, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.aws.conftest import Site
from trainyard.aws.client import action_of

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tasks" / "storage.md"
OF_OTHERS = {"ByEfs", "Inventory"}
"""Statements that are not about the modules."""


def listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def documented() -> list[dict[str, Any]]:
    """The statements on the page, each with a list of actions."""
    (text,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    statements = json.loads(text)["Statement"]
    return [{**each, "Action": listed(each["Action"])} for each in statements]


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
    allowed = {action for each in documented() if each["Sid"] not in OF_OTHERS for action in each["Action"]}
    assert {action_of(call.name) for call in site.proxy.calls} == allowed


MAKES = {"elasticfilesystem:CreateFileSystem", "ec2:CreateSecurityGroup"}
TAGS = {"elasticfilesystem:TagResource", "ec2:CreateTags"}
UNTAGS = {"elasticfilesystem:UntagResource", "ec2:DeleteTags"}
OWNER = "trainyard"


@pytest.mark.parametrize("statement", documented(), ids=lambda each: str(each["Sid"]))
def test_only_what_was_made_by_it_can_be_changed(statement: dict[str, Any]) -> None:
    """A tag that could be given to what is there would make everything of the account the caller's own."""
    actions, condition = set(statement["Action"]), statement.get("Condition", {})
    equals = condition.get("StringEquals", {})
    has, gets = (equals.get(f"aws:{kind}Tag/{OWNER}") == "NAME" for kind in ("Resource", "Request"))
    makes = equals.get(next((key for key in equals if key.endswith(":CreateAction")), ""))
    keeps = condition.get("ForAllValues:StringNotEquals", {}).get("aws:TagKeys") == [OWNER]
    if all(":Describe" in action for action in actions) or statement["Sid"] in ("ByEfs", "MakeGroupInVpc"):
        return
    if actions & (TAGS | UNTAGS):
        assert (actions <= TAGS and gets and makes) or (actions <= TAGS | UNTAGS and has and keeps)
    elif actions & MAKES:
        assert actions <= MAKES and gets
    else:
        assert has
