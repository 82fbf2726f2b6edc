#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/security_group.py and security_group_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_security_group
short_description: Manage the security group of AWS EFS mount targets
description:
  - Manages a group that allows NFS (TCP 2049) from the given sources. It is identified by its name in its VPC, and by a
    tag with its owner; a group of that name without that tag is refused.
  - Other ingress rules are kept unless O(purge_rules) is set. Egress rules are never changed.
options:
  state:
    description: V(absent) deletes the groups of this name and owner in all VPCs, and waits while network interfaces
      still use them.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the group.
    type: str
    required: true
  owner:
    description: Value of its tag C(trainyard).
    type: str
    required: true
  description:
    description: Description of the group; EC2 sets it only at creation.
    type: str
    default: NFS from the nodes to EFS
  vpc_id:
    description: VPC of the group. With V(absent), only the group in this VPC is deleted.
    type: str
  subnet_ids:
    description: Subnets that determine the VPC if O(vpc_id) is not given; they must all be in the same VPC.
    type: list
    elements: str
    default: []
  sources:
    description: Permitted sources, as ids of security groups and as networks; the whole internet is refused. Without
      it, the rules are not changed.
    type: list
    elements: str
  purge_rules:
    description: Remove all other ingress rules.
    type: bool
    default: false
  tags:
    description: Tags to set in addition to the owner's.
    type: dict
  purge_tags:
    description: Remove other tags, if O(tags) is given.
    type: bool
    default: false
attributes:
  diff_mode:
    support: full
    description: Shows the rules of the group.
extends_documentation_fragment: [proxy, aws, aws.waiting]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Allow NFS from the nodes
  efs_security_group:
    name: trainyard-mine-efs
    owner: trainyard-mine
    subnet_ids: [subnet-0123456789abcdef0]
    sources: [sg-0123456789abcdef0]
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
security_group:
  description: The group with C(id), C(name) and C(vpc_id). In check mode, the id is empty if it does not exist yet.
  type: dict
  returned: when it is kept
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.client import CONNECTION, WAITING, opened, patience
from ansible.module_utils.trainyard.aws.security_group import (
    SecurityGroupPlan,
    SecurityGroupRemoval,
    Wanted,
    rules_of,
    vpc_of,
)
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str", "required": True},
    "owner": {"type": "str", "required": True},
    "description": {"type": "str", "default": "NFS from the nodes to EFS"},
    "vpc_id": {"type": "str"},
    "subnet_ids": {"type": "list", "elements": "str", "default": []},
    "sources": {"type": "list", "elements": "str"},
    "purge_rules": {"type": "bool", "default": False},
    "tags": {"type": "dict"},
    "purge_tags": {"type": "bool", "default": False},
    **CONNECTION,
    **WAITING,
}


def wanted(params: dict[str, Any]) -> Wanted:
    """Return the group from the options.

    :raises TrainyardError: a source is invalid.
    """
    sources = params["sources"]
    return Wanted(
        rules=None if sources is None else rules_of(sources),
        **{name: params[name] for name in ("name", "owner", "description", "purge_rules", "tags", "purge_tags")},
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    work: list[SecurityGroupPlan | SecurityGroupRemoval] = []

    def make_plan() -> Plan:
        limits, vpc = patience(params), params["vpc_id"] or ""
        group = wanted(params)
        if params["state"] == "present" and not (vpc or params["subnet_ids"]):
            raise TrainyardError(f"The security group {params['name']} has no VPC.", remedy="Set vpc_id or subnet_ids.")
        aws = opened(params)
        if params["state"] == "absent":
            work.append(SecurityGroupRemoval(aws, group.name, group.owner, vpc, limits))
        else:
            work.append(SecurityGroupPlan(aws, group, vpc or vpc_of(aws, params["subnet_ids"]), limits))
        return work[0].plan()

    def make_result() -> dict[str, Any]:
        return {"security_group": work[0].result()} if isinstance(work[0], SecurityGroupPlan) else {}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
