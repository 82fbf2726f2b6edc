#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/controller/environment.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_environment
short_description: Keep a Python environment with exactly the locked packages
description:
  - Makes a virtual environment from a list in which every package has its hashes, and a link that leads to it. Another
    list or another Python makes another one beside it; the link is moved when it is complete, and the old one removed.
options:
  path:
    description: The link. The environments lie in the folder of its name with an C(s) beside it.
    type: path
    required: true
  requirements:
    description: Text of the list, as C(pip --require-hashes) takes it.
    type: str
    required: true
  url:
    description: Address of an archive of wheels (C(wheels/NAME.whl)); empty for the Python index.
    type: str
    default: ""
  sha256:
    description: Of that archive.
    type: str
    default: ""
  python:
    description: Program that it is made with.
    type: path
    default: /usr/bin/python3
  timeout:
    description: Seconds for the installation.
    type: int
    default: 900
attributes:
  check_mode:
    support: full
    description: Reports the same plan.
  diff_mode:
    support: full
    description: Shows which environment is in use.
requirements:
  - the venv package of that Python
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Install the program's packages
  python_environment:
    path: /opt/program/environment
    requirements: "{{ lookup('ansible.builtin.file', 'requirements.txt', rstrip=false) }}"
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.controller.environment import Environment, make_plan, version
from ansible.module_utils.trainyard.core.runner import run_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "requirements": {"type": "str", "required": True},
            "url": {"type": "str", "default": ""},
            "sha256": {"type": "str", "default": ""},
            "python": {"type": "path", "default": "/usr/bin/python3"},
            "timeout": {"type": "int", "default": 900},
        },
        supports_check_mode=True,
    )
    wanted = Environment(**{**module.params, "path": Path(module.params["path"])})
    run_plan(module, lambda: make_plan(wanted, version(wanted)))


if __name__ == "__main__":
    main()
