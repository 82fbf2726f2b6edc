#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/mount_target.py and mount_target_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_mount_target
short_description: Manage the mount targets of an AWS EFS file system
description:
  - Manages all targets of one file system in one task, identified by their subnets. All are created before the module
    waits for the first one.
  - There can be one target per zone, all in one VPC; other combinations are refused before anything is changed.
  - Other targets are kept unless O(purge) is set.
options:
  state:
    description: V(absent) deletes all targets of the file system, which breaks its mounts.
    type: str
    choices: [present, absent]
    default: present
  file_system_id:
    description: Id of the file system. It may be empty only in check mode, for a file system that does not exist yet.
    type: str
    required: true
  confirm:
    description: With V(absent), the same id as a confirmation; otherwise nothing is deleted.
    type: str
    default: ""
  targets:
    description: The targets, one per zone.
    type: list
    elements: dict
    default: []
    suboptions:
      subnet_id:
        description: Subnet of the target, which also determines the zone.
        type: str
        required: true
      ip_address_type:
        description: Address family; AWS's default is V(IPV4_ONLY). Cannot be changed.
        type: str
        choices: [IPV4_ONLY, IPV6_ONLY, DUAL_STACK]
      ip_address:
        description: Address in the subnet; by default AWS chooses one. Cannot be changed.
        type: str
      ipv6_address:
        description: The same for IPv6.
        type: str
      security_groups:
        description: Ids of required security groups; without it, a new target gets the VPC's default group. In check
          mode, an empty id means a group that does not exist yet.
        type: list
        elements: str
  availability_zone:
    description: Zone of a One Zone file system; targets in other zones are refused.
    type: str
  any_subnet:
    description: If a zone already has a target in another subnet of the VPC, accept it instead of the one in
      O(targets). Otherwise it is refused.
    type: bool
    default: false
  purge_security_groups:
    description: Remove other security groups from the targets; clients that depend on them lose their mounts.
    type: bool
    default: false
  purge:
    description: Delete targets in subnets that are not in O(targets), which breaks their mounts.
    type: bool
    default: false
attributes:
  diff_mode:
    support: full
    description: Shows the requested properties for each subnet.
extends_documentation_fragment: [proxy, aws, aws.waiting]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Create a mount target in each of two zones
  efs_mount_target:
    file_system_id: fs-0123456789abcdef0
    targets:
      - {subnet_id: subnet-0123456789abcdef0, security_groups: [sg-0123456789abcdef0]}
      - {subnet_id: subnet-0fedcba9876543210, security_groups: [sg-0123456789abcdef0]}
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
mount_targets:
  description: The targets, each with C(id), C(subnet_id), C(availability_zone), C(vpc_id), C(ip_address),
    C(ipv6_address), C(network_interface_id) and C(state). Values that AWS chooses are empty before a target exists.
  type: list
  elements: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.changes import require_confirmation, require_file_system
from ansible.module_utils.trainyard.aws.client import CONNECTION, WAITING, opened, patience
from ansible.module_utils.trainyard.aws.mount_target import MountTarget, MountTargetsPlan
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan

TARGET = {
    "subnet_id": {"type": "str", "required": True},
    "ip_address_type": {"type": "str", "choices": ["IPV4_ONLY", "IPV6_ONLY", "DUAL_STACK"]},
    "ip_address": {"type": "str"},
    "ipv6_address": {"type": "str"},
    "security_groups": {"type": "list", "elements": "str"},
}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "file_system_id": {"type": "str", "required": True},
    "confirm": {"type": "str", "default": ""},
    "targets": {"type": "list", "elements": "dict", "default": [], "options": TARGET},
    "availability_zone": {"type": "str"},
    "any_subnet": {"type": "bool", "default": False},
    "purge": {"type": "bool", "default": False},
    "purge_security_groups": {"type": "bool", "default": False},
    **CONNECTION,
    **WAITING,
}


def wanted(given: dict[str, Any]) -> MountTarget:
    """Return a target from its options."""
    groups = given["security_groups"]
    return MountTarget(
        subnet=given["subnet_id"],
        security_groups=None if groups is None else frozenset(groups),
        **{name: given[name] for name in ("ip_address_type", "ip_address", "ipv6_address")},
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    work: list[MountTargetsPlan] = []

    def make_plan() -> Plan:
        absent, its_id = params["state"] == "absent", params["file_system_id"]
        if absent:
            require_confirmation(its_id, params["confirm"], "A mount target")
        else:
            require_file_system(its_id, module.check_mode)
        targets = None if absent else [wanted(given) for given in params["targets"]]
        switches = {name: params[name] for name in ("any_subnet", "purge", "purge_security_groups")}
        limits, zone = patience(params), params["availability_zone"] or ""
        work.append(MountTargetsPlan(opened(params), its_id, targets, **switches, zone=zone, patience=limits))
        return work[0].plan()

    def make_result() -> dict[str, Any]:
        if not module.check_mode:
            work[0].settled()
        return {"mount_targets": work[0].result()}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
