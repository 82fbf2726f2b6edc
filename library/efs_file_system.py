#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/file_system.py and file_system_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_file_system
short_description: Keep a file system of AWS EFS, or delete one
description:
  - Known by its creation token, so an interrupted run is continued and never makes a second one.
  - What AWS cannot change is refused with all that differs, before anything is changed.
  - An option that is left out is left alone, and AWS is not even asked about it; an empty one removes.
  - Which parameters of the API it has, and which not and why, is the table in docs/efs-parameters.md.
options:
  state:
    description: V(absent) deletes the file system of O(file_system_id) with everything in it.
    type: str
    choices: [present, absent]
    default: present
  creation_token:
    description:
      - Up to 64 characters that are the file system's own in the account and region. Needed to make one.
      - With V(absent), a file system that has another one is not deleted.
    type: str
  file_system_id:
    description: Which one to delete; needed for V(absent) and not used otherwise.
    type: str
  confirm:
    description: The same id once more, or nothing is deleted.
    type: str
    default: ""
  name:
    description: Value of the tag C(Name), which the console shows.
    type: str
  performance_mode:
    description: AWS advises V(generalPurpose) for all. Cannot be changed.
    type: str
    choices: [generalPurpose, maxIO]
  throughput_mode:
    description: How throughput is given and paid. AWS takes another mode, or a smaller amount, once in 24 hours.
    type: str
    choices: [bursting, provisioned, elastic]
  provisioned_mibps:
    description: Throughput in MiB/s, with V(provisioned) and only then.
    type: float
  encrypted:
    description: Whether the files are encrypted where they lie. Cannot be changed.
    type: bool
  kms_key_id:
    description:
      - Id, ARN or alias of the key; without it, AWS's own key for EFS. Cannot be changed.
      - What an alias leads to is not compared afterwards.
    type: str
  availability_zone:
    description: The one zone of a file system of a single zone; without it, EFS keeps the files in several. Cannot be
      changed.
    type: str
  lifecycle:
    description: Which files move to a cheaper class and back. What is set for the archive class stays as it is.
    type: dict
    suboptions:
      transition_to_ia:
        description: When a file that nobody reads goes to the class for infrequent access.
        type: str
        choices: [AFTER_1_DAY, AFTER_7_DAYS, AFTER_14_DAYS, AFTER_30_DAYS, AFTER_60_DAYS, AFTER_90_DAYS, AFTER_180_DAYS,
          AFTER_270_DAYS, AFTER_365_DAYS]
      transition_to_primary:
        description: When a file that is read comes back.
        type: str
        choices: [AFTER_1_ACCESS]
  backup:
    description: Whether AWS Backup backs it up every day.
    type: bool
  require_tls:
    description: V(true) sets the policy that admits every client of the network, and none without TLS; V(false) removes
      that policy, and leaves another one. Without it, and without O(policy), the policy is neither read nor changed.
    type: bool
  policy:
    description: A resource policy of one's own; an empty one removes the policy that is there.
    type: dict
  tags:
    description:
      - Tags to set.
      - With the tag C(trainyard) among them, a file system of this token that has another value of it, or none, is
        somebody else's and refused.
    type: dict
  purge_tags:
    description: Remove tags that are not in O(tags).
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
    description: Shows the properties that were asked for.
requirements: [boto3]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep the file system of a site
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
  description: What was (in check mode would be) done, one sentence each.
  type: list
  elements: str
  returned: always
file_system:
  description:
    - The file system with C(id), C(arn), C(dns_name), C(state), C(creation_token) and the properties that were asked
      for. C(requires_tls) says of a policy that was asked for whether it refuses clients without TLS.
    - In check mode, for one that is not there yet, the first three are empty.
  type: dict
  returned: when it is kept
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.arguments import CONNECTION, WAITING, given, opened, patience
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
    """The file system that the options describe.

    :raises TrainyardError: two options say different things of its policy.
    """
    if params["require_tls"] and params["policy"] is not None:
        raise TrainyardError(
            "require_tls and policy exclude each other: a file system has one policy.",
            remedy="Set one of them; a policy of your own can refuse what comes without TLS, too.",
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
