#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/security_group.py and security_group_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_security_group
short_description: Keep the security group of mount targets of AWS EFS, or delete it
description:
  - A group that admits NFS (TCP 2049) from the given sources. Known by its name in its VPC, and by a tag as made for
    its owner; a group of that name without that tag is refused.
  - Other rules are left alone unless O(purge_rules) says otherwise, and what goes out always.
options:
  state:
    description: V(absent) deletes the group, in every VPC that has one of this name and owner, and waits while network
      interfaces still have it.
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
    description: What the group is for; EC2 takes it when the group is made and never again.
    type: str
    default: NFS from the nodes to EFS
  vpc_id:
    description: VPC of the group; with V(absent) only that of this VPC is deleted.
    type: str
  subnet_ids:
    description: Subnets from which the VPC is found out where O(vpc_id) is not given; they have to be in one.
    type: list
    elements: str
    default: []
  sources:
    description: Who may connect, ids of security groups and networks; the whole internet is refused. Left out, the
      rules are left alone.
    type: list
    elements: str
  purge_rules:
    description: Remove every other rule for what comes in.
    type: bool
    default: false
  tags:
    description: Tags to set beside that of the owner.
    type: dict
  purge_tags:
    description: Remove tags that are not wanted, where there are O(tags).
    type: bool
    default: false
  profile:
    description: Profile of AWS's configuration files; without it boto3 looks where it always does.
    type: str
  region:
    description: Region; without it that of the environment or the profile.
    type: str
  timeout:
    description: Limit in seconds for each wait.
    type: int
    default: 300
  interval:
    description: Seconds between two looks while it waits.
    type: float
    default: 3
attributes:
  check_mode:
    support: full
    description: Reads, and reports the same steps and the same diff.
  diff_mode:
    support: full
    description: Shows what the group allows.
requirements: [boto3]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Admit the nodes
  efs_security_group:
    name: trainyard-mine-efs
    owner: trainyard-mine
    subnet_ids: [subnet-0123456789abcdef0]
    sources: [sg-0123456789abcdef0]
"""

RETURN = r"""
steps:
  description: What was (in check mode would be) done, one sentence each.
  type: list
  elements: str
  returned: always
security_group:
  description: The group with C(id), C(name) and C(vpc_id). In check mode, for one that is not there yet, the id is
    empty.
  type: dict
  returned: when it is kept
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.arguments import CONNECTION, WAITING, opened, patience
from ansible.module_utils.trainyard.aws.security_group import Wanted, rules_of
from ansible.module_utils.trainyard.aws.security_group_plan import SecurityGroupPlan, SecurityGroupRemoval, vpc_of
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
    """The group that the options describe.

    :raises TrainyardError: a source is none.
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
            raise TrainyardError(
                f"The security group {params['name']} has no VPC.", remedy="Set vpc_id, or subnet_ids of it."
            )
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
