#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/controller/bare_repository.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pushed_repository
short_description: Keep a bare git repository and its checkout at a revision that was copied to the host
description:
  - Creates the repository, imports the commits from a file of C(git bundle), moves the ref, and checks the revision
    out. The revision becomes the last good one of the schedule.
options:
  path:
    description: Path of the repository.
    type: path
    required: true
  checkout:
    description: Folder for the files of the revision.
    type: path
    required: true
  ref:
    description: Full name of the ref, such as C(refs/heads/main).
    type: str
    required: true
  commit:
    description: Full hash of the commit for the ref.
    type: str
    required: true
  bundle:
    description: File with the commits. It may be omitted only in check mode, which then reports what is missing.
    type: path
  user:
    description: Owner of the files, and the user that runs git; in check mode, it need not exist yet.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
    description: Reports the same plan.
  diff_mode:
    support: full
    description: Shows the commits of ref and checkout.
requirements:
  - git
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Push a revision
  pushed_repository:
    path: /var/lib/schedule/repository.git
    checkout: /var/lib/schedule/installed
    ref: refs/heads/main
    commit: 0123456789012345678901234567890123456789
    bundle: /tmp/commits
    user: schedule
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.controller.bare_repository import Pushed, make_plan
from ansible.module_utils.trainyard.core.runner import run_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "checkout": {"type": "path", "required": True},
            "ref": {"type": "str", "required": True},
            "commit": {"type": "str", "required": True},
            "bundle": {"type": "path"},
            "user": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    params = module.params
    paths = {name: Path(params[name]) if params[name] else None for name in ("path", "checkout", "bundle")}
    pushed = Pushed(**{**params, **paths})
    run_plan(module, lambda: make_plan(pushed))


if __name__ == "__main__":
    main()
