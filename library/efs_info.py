#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/info.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_info
short_description: Read file systems of AWS EFS with what belongs to them
description:
  - File systems with their mount targets, access points, lifecycle, backup and policy, and the security groups that
    M(efs_security_group) has made. Changes nothing.
options:
  creation_token:
    description: Only the file system of this token.
    type: str
  file_system_id:
    description: Only this file system.
    type: str
  owner:
    description: Security groups of this owner only; without it, those of every owner.
    type: str
  parts:
    description: What to read of each file system beside its description, and whether to read the security groups. Each
      part takes calls of its own.
    type: list
    elements: str
    choices: [mount_targets, access_points, lifecycle, backup, policy, security_groups]
    default: [mount_targets, access_points, lifecycle, backup, policy, security_groups]
  profile:
    description: Profile of AWS's configuration files; without it boto3 looks where it always does.
    type: str
  region:
    description: Region; without it that of the environment or the profile.
    type: str
attributes:
  check_mode:
    support: full
    description: Changes nothing in any mode.
requirements: [boto3]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look for the file system of a site
  efs_info:
    creation_token: trainyard-mine
  register: found
"""

RETURN = r"""
file_systems:
  description:
    - The file systems, each with C(id), C(arn), C(creation_token), C(name), C(state), C(bytes), C(availability_zone),
      C(performance_mode), C(throughput_mode), C(provisioned_mibps), C(encrypted), C(kms_key_id), C(tags), and the parts
      that were asked for.
    - None where there is no file system of the token or id.
  type: list
  elements: dict
  returned: always
security_groups:
  description: The groups that were made for the owner, each with C(id), C(name), C(vpc_id), C(owner) and C(allows).
  type: list
  elements: dict
  returned: when asked for
region:
  description: Where that is.
  type: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.arguments import CONNECTION, opened
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
