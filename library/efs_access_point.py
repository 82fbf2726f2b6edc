#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/aws/access_point.py and access_point_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: efs_access_point
short_description: Manage the access points of an AWS EFS file system
description:
  - Manages all access points of one file system in one task. They are identified by their names, from which the client
    token is derived. Access points created elsewhere have other tokens and are not touched.
  - Only the tags of an access point can be changed. Other differences are refused before anything is changed.
  - Other access points are kept unless O(purge) is set. The files in their folders always stay.
options:
  state:
    description: V(absent) deletes all access points of the file system.
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
  access_points:
    description: The access points.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Its name, and value of its tag C(Name).
        type: str
        required: true
      path:
        description: Absolute path of the folder that clients of the access point see as root, at most four folders
          deep.
        type: str
        default: /
      creation:
        description: Owner and permissions with which EFS creates that folder; without it, the folder must exist.
        type: dict
        suboptions:
          owner_uid:
            description: Number of the owner.
            type: int
            required: true
          owner_gid:
            description: Number of the group.
            type: int
            required: true
          permissions:
            description: Permission bits, an octal string.
            type: str
            required: true
      user:
        description: User and group that EFS enforces for all clients; without it, clients' own IDs are used.
        type: dict
        suboptions:
          uid:
            description: Number of the user.
            type: int
            required: true
          gid:
            description: Number of the group.
            type: int
            required: true
          secondary_gids:
            description: Numbers of additional groups.
            type: list
            elements: int
            default: []
      tags:
        description: Tags to set in addition to C(Name).
        type: dict
  purge:
    description: Delete access points that are not in O(access_points).
    type: bool
    default: false
  purge_tags:
    description: Remove other tags from access points that have I(tags).
    type: bool
    default: false
attributes:
  diff_mode:
    support: full
    description: Shows the requested properties of each access point.
extends_documentation_fragment: [proxy, aws, aws.waiting]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep an access point for each use
  efs_access_point:
    file_system_id: fs-0123456789abcdef0
    access_points:
      - name: datasets
        path: /datasets
        user: {uid: 65532, gid: 65532}
        creation: {owner_uid: 65532, owner_gid: 65532, permissions: "2770"}
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
access_points:
  description: The requested access points, each with C(name), C(id), C(arn), C(volume_handle) for the CSI driver,
    C(path) and C(state). Values that AWS chooses are empty before an access point exists.
  type: list
  elements: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.aws.access_point import AccessPoint, AccessPointsPlan, bare
from ansible.module_utils.trainyard.aws.changes import require_confirmation, require_file_system
from ansible.module_utils.trainyard.aws.client import CONNECTION, WAITING, opened, patience
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan

ACCESS_POINT = {
    "name": {"type": "str", "required": True},
    "path": {"type": "str", "default": "/"},
    "creation": {
        "type": "dict",
        "options": {
            "owner_uid": {"type": "int", "required": True},
            "owner_gid": {"type": "int", "required": True},
            "permissions": {"type": "str", "required": True},
        },
    },
    "user": {
        "type": "dict",
        "options": {
            "uid": {"type": "int", "required": True},
            "gid": {"type": "int", "required": True},
            "secondary_gids": {"type": "list", "elements": "int", "default": []},
        },
    },
    "tags": {"type": "dict"},
}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "file_system_id": {"type": "str", "required": True},
    "confirm": {"type": "str", "default": ""},
    "access_points": {"type": "list", "elements": "dict", "default": [], "options": ACCESS_POINT},
    "purge": {"type": "bool", "default": False},
    "purge_tags": {"type": "bool", "default": False},
    **CONNECTION,
    **WAITING,
}


def wanted(given: dict[str, Any]) -> AccessPoint:
    """Return an access point from its options."""
    user, creation = given["user"], given["creation"]
    return AccessPoint(
        name=given["name"],
        path=given["path"],
        user=user and {**user, "secondary_gids": sorted(user["secondary_gids"])},
        creation=creation and {**creation, "permissions": bare(creation["permissions"])},
        tags=given["tags"],
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    work: list[AccessPointsPlan] = []

    def make_plan() -> Plan:
        absent, its_id = params["state"] == "absent", params["file_system_id"]
        if absent:
            require_confirmation(its_id, params["confirm"], "An access point")
        else:
            require_file_system(its_id, module.check_mode)
        points = None if absent else [wanted(given) for given in params["access_points"]]
        purge, purge_tags, limits = params["purge"], params["purge_tags"], patience(params)
        work.append(
            AccessPointsPlan(opened(params), its_id, points, purge=purge, purge_tags=purge_tags, patience=limits)
        )
        return work[0].plan()

    def make_result() -> dict[str, Any]:
        if not module.check_mode:
            work[0].settled()
        return {"access_points": work[0].result()}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
