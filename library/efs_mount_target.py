#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/mount_target.py and mount_target_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_mount_target
short_description: Keep the mount targets of a file system of AWS EFS, or delete them
description:
  - All targets of one file system in one task, known by their subnets. All are made before the first is waited for.
  - One in each zone and all in one VPC; anything else is refused before anything is changed.
  - Targets that are not named are left alone unless O(purge) says otherwise.
options:
  state:
    description: V(absent) deletes every target of the file system, and breaks its mounts.
    type: str
    choices: [present, absent]
    default: present
  file_system_id:
    description: Whose targets. Empty in check mode alone, for a file system that is not there yet.
    type: str
    required: true
  confirm:
    description: The same id once more with V(absent), or nothing is deleted.
    type: str
    default: ""
  targets:
    description: The targets, one in each zone.
    type: list
    elements: dict
    default: []
    suboptions:
      subnet_id:
        description: Subnet, and with it the zone.
        type: str
        required: true
      ip_address_type:
        description: Family of its addresses; without it AWS takes V(IPV4_ONLY). Cannot be changed.
        type: str
        choices: [IPV4_ONLY, IPV6_ONLY, DUAL_STACK]
      ip_address:
        description: Address of the subnet; without it AWS chooses one. Cannot be changed.
        type: str
      ipv6_address:
        description: The same for IPv6.
        type: str
      security_groups:
        description: Ids of security groups that it has to have; without it a new target gets the VPC's default one. An
          empty id, in check mode, is of a group that is not there yet.
        type: list
        elements: str
  availability_zone:
    description: The one zone of a file system of a single zone; targets in others are refused.
    type: str
  any_subnet:
    description: Take the target that a zone has already in another subnet of the VPC for the one in O(targets), where
      it would be refused otherwise.
    type: bool
    default: false
  purge_security_groups:
    description: Take other security groups away from the targets; clients behind them lose their mounts.
    type: bool
    default: false
  purge:
    description: Delete the targets in subnets that are not in O(targets), which breaks their mounts.
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
    description: Shows what was asked for of each subnet.
requirements: [boto3]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep one mount target in each of two zones
  efs_mount_target:
    file_system_id: fs-0123456789abcdef0
    targets:
      - {subnet_id: subnet-0123456789abcdef0, security_groups: [sg-0123456789abcdef0]}
      - {subnet_id: subnet-0fedcba9876543210, security_groups: [sg-0123456789abcdef0]}
"""

RETURN = r"""
steps:
  description: What was (in check mode would be) done, one sentence each.
  type: list
  elements: str
  returned: always
mount_targets:
  description: The targets, each with C(id), C(subnet_id), C(availability_zone), C(vpc_id), C(ip_address),
    C(ipv6_address), C(network_interface_id) and C(state). What AWS chooses is empty before a target is there.
  type: list
  elements: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.arguments import CONNECTION, WAITING, opened, patience
from ansible.module_utils.trainyard.aws.changes import require_confirmation, require_file_system
from ansible.module_utils.trainyard.aws.mount_target import MountTarget
from ansible.module_utils.trainyard.aws.mount_target_plan import MountTargetsPlan
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
    """One target as the options describe it."""
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
