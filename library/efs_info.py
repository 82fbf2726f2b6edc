#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/info.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_info
short_description: Read AWS EFS file systems and their resources
description:
  - Reads file systems with their mount targets, access points, lifecycle, backup and policy, and the security groups
    created by M(efs_security_group). Changes nothing.
options:
  creation_token:
    description: Only the file system of this token.
    type: str
  file_system_id:
    description: Only this file system.
    type: str
  owner:
    description: Only security groups of this owner; the default is all owners.
    type: str
  parts:
    description: Parts to read for each file system in addition to its description, and whether to read the security
      groups. Each part needs additional calls.
    type: list
    elements: str
    choices: [mount_targets, access_points, lifecycle, backup, policy, security_groups]
    default: [mount_targets, access_points, lifecycle, backup, policy, security_groups]
extends_documentation_fragment: [proxy, aws, reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Read the file system of a site
  efs_info:
    creation_token: trainyard-mine
  register: found
"""

RETURN = r"""
file_systems:
  description:
    - The file systems, each with C(id), C(arn), C(creation_token), C(name), C(state), C(bytes), C(availability_zone),
      C(performance_mode), C(throughput_mode), C(provisioned_mibps), C(encrypted), C(kms_key_id), C(tags), and the
      requested parts.
    - Empty if no file system has the token or id.
  type: list
  elements: dict
  returned: always
security_groups:
  description: The groups created for the owner, each with C(id), C(name), C(vpc_id), C(owner) and C(allows).
  type: list
  elements: dict
  returned: when requested
region:
  description: The region.
  type: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.client import CONNECTION, opened
from ansible.module_utils.trainyard.aws.info import PARTS, file_systems, security_groups
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "creation_token": {"type": "str", "no_log": False},
    "file_system_id": {"type": "str"},
    "owner": {"type": "str"},
    "parts": {"type": "list", "elements": "str", "choices": PARTS, "default": PARTS},
    **CONNECTION,
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    try:
        aws = opened(params)
        chosen = params["creation_token"] or "", params["file_system_id"] or ""
        found: dict[str, Any] = {
            "file_systems": file_systems(aws, *chosen, params["parts"]),
            "region": aws.region,
        }
        if "security_groups" in params["parts"]:
            found["security_groups"] = security_groups(aws, params["owner"] or "")
    except TrainyardError as error:
        fail(module, error)
    else:
        module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
