#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/file_system.py and file_system_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_file_system
short_description: Manage an AWS EFS file system
description:
  - The file system is identified by its creation token, so that running it again completes an interrupted run and never
    creates a second file system.
  - If properties differ that AWS cannot change, all of them are reported before anything is changed.
  - A property without an option is neither read nor changed; an empty option removes it.
  - The table in docs/reference/efs-parameters.md lists the parameters of the API with their options.
options:
  state:
    description: V(absent) deletes the file system of O(file_system_id) with everything in it.
    type: str
    choices: [present, absent]
    default: present
  creation_token:
    description:
      - Up to 64 characters, unique in the account and region. Required to create a file system.
      - With V(absent), a file system with another token is not deleted.
    type: str
  file_system_id:
    description: Id of the file system to delete; required for V(absent) and not used otherwise.
    type: str
  confirm:
    description: The same id as a confirmation; otherwise nothing is deleted.
    type: str
    default: ""
  name:
    description: Value of the tag C(Name), which the console shows.
    type: str
  performance_mode:
    description: Performance mode. AWS recommends V(generalPurpose) in all cases. Cannot be changed.
    type: str
    choices: [generalPurpose, maxIO]
  throughput_mode:
    description: How throughput is provided and billed. AWS allows another mode, or a decrease of the
      provisioned throughput, once in 24 hours.
    type: str
    choices: [bursting, provisioned, elastic]
  provisioned_mibps:
    description: Throughput in MiB/s; only with V(provisioned).
    type: float
  encrypted:
    description: Whether the files are encrypted at rest. Cannot be changed.
    type: bool
  kms_key_id:
    description:
      - Id, ARN or alias of the key; the default is AWS's own key for EFS. Cannot be changed.
      - The key behind an alias is not compared afterwards.
    type: str
  availability_zone:
    description: Zone of a One Zone file system; without it, EFS stores the files in several zones. Cannot be changed.
    type: str
  lifecycle:
    description: Rules that move files to a cheaper storage class and back. The rule for the archive class is kept.
    type: dict
    suboptions:
      transition_to_ia:
        description: Time after which an unread file moves to the infrequent access class.
        type: str
        choices: [AFTER_1_DAY, AFTER_7_DAYS, AFTER_14_DAYS, AFTER_30_DAYS, AFTER_60_DAYS, AFTER_90_DAYS, AFTER_180_DAYS,
          AFTER_270_DAYS, AFTER_365_DAYS]
      transition_to_primary:
        description: Access after which a file moves back.
        type: str
        choices: [AFTER_1_ACCESS]
  backup:
    description: Whether AWS Backup backs it up every day.
    type: bool
  require_tls:
    description: V(true) sets the policy that admits all clients of the network, but only with TLS; V(false) removes
      that policy and keeps any other. Without it, and without O(policy), the policy is neither read nor changed.
    type: bool
  policy:
    description: A custom resource policy; an empty one removes the existing policy.
    type: dict
  tags:
    description:
      - Tags to set.
      - If they include C(trainyard), an existing file system of this token with another value of that tag, or without
        it, is refused as another owner's.
    type: dict
  purge_tags:
    description: Remove tags that are not in O(tags).
    type: bool
    default: false
attributes:
  diff_mode:
    support: full
    description: Shows the requested properties.
extends_documentation_fragment: [proxy, aws, aws.waiting]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Create the file system of a site
  efs_file_system:
    creation_token: trainyard-mine
    name: trainyard-mine
    throughput_mode: elastic
    encrypted: true
    lifecycle: {transition_to_ia: AFTER_30_DAYS, transition_to_primary: AFTER_1_ACCESS}
    backup: true
    require_tls: true

- name: Delete it
  efs_file_system:
    state: absent
    file_system_id: fs-0123456789abcdef0
    confirm: fs-0123456789abcdef0
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
file_system:
  description:
    - The file system with C(id), C(arn), C(dns_name), C(state), C(creation_token) and the requested properties. If a
      policy was requested, C(requires_tls) is true if it refuses clients without TLS.
    - In check mode, the first three are empty if the file system does not exist yet.
  type: dict
  returned: when it is kept
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.client import CONNECTION, WAITING, given, opened, patience
from ansible.module_utils.trainyard.aws.file_system import FileSystem
from ansible.module_utils.trainyard.aws.file_system_plan import FileSystemPlan, FileSystemRemoval
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan

DAYS = (1, 7, 14, 30, 60, 90, 180, 270, 365)
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "creation_token": {"type": "str", "no_log": False},
    "file_system_id": {"type": "str"},
    "confirm": {"type": "str", "default": ""},
    "name": {"type": "str"},
    "performance_mode": {"type": "str", "choices": ["generalPurpose", "maxIO"]},
    "throughput_mode": {"type": "str", "choices": ["bursting", "provisioned", "elastic"]},
    "provisioned_mibps": {"type": "float"},
    "encrypted": {"type": "bool"},
    "kms_key_id": {"type": "str", "no_log": False},
    "availability_zone": {"type": "str"},
    "lifecycle": {
        "type": "dict",
        "options": {
            "transition_to_ia": {
                "type": "str",
                "choices": [f"AFTER_{days}_DAY{'S' if days > 1 else ''}" for days in DAYS],
            },
            "transition_to_primary": {"type": "str", "choices": ["AFTER_1_ACCESS"]},
        },
    },
    "backup": {"type": "bool"},
    "require_tls": {"type": "bool"},
    "policy": {"type": "dict"},
    "tags": {"type": "dict"},
    "purge_tags": {"type": "bool", "default": False},
    **CONNECTION,
    **WAITING,
}
SAME = (
    "performance_mode",
    "throughput_mode",
    "provisioned_mibps",
    "encrypted",
    "kms_key_id",
    "availability_zone",
    "backup",
)


def wanted(params: dict[str, Any]) -> FileSystem:
    """Return the file system from the options.

    :raises TrainyardError: two options set its policy.
    """
    if params["require_tls"] and params["policy"] is not None:
        raise TrainyardError(
            "require_tls and policy exclude each other: a file system has one policy.",
            remedy="Set only one of them; your own policy can also refuse clients without TLS.",
        )
    tags = params["tags"]
    if params["name"] is not None:
        tags = {**(tags or {}), "Name": params["name"]}
    return FileSystem(
        **{name: params[name] for name in SAME},
        lifecycle=given(params["lifecycle"]),
        policy=params["policy"],
        require_tls=params["require_tls"] if params["policy"] is None else None,
        tags=tags,
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[("state", "present", ["creation_token"]), ("state", "absent", ["file_system_id"])],
        supports_check_mode=True,
    )
    params = module.params
    work: list[FileSystemPlan | FileSystemRemoval] = []

    def make_plan() -> Plan:
        aws, limits = opened(params), patience(params)
        token = params["creation_token"] or ""
        if params["state"] == "absent":
            work.append(
                FileSystemRemoval(aws, params["file_system_id"], params["confirm"], token=token, patience=limits)
            )
        else:
            purge = params["purge_tags"]
            work.append(FileSystemPlan(aws, token, wanted(params), purge_tags=purge, patience=limits))
        return work[0].plan()

    def make_result() -> dict[str, Any]:
        if not module.check_mode:
            work[0].settled()
        return {"file_system": work[0].result()} if isinstance(work[0], FileSystemPlan) else {}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
