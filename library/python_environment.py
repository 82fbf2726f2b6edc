#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/controller/python_environment.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_environment
short_description: Keep a Python environment with exactly the locked packages
description:
  - Creates a virtual environment from a list with the hashes of all packages, and a link to it. If the list or Python
    changes, a new environment is created next to it. Once that is complete, the link is moved and the old one removed.
options:
  path:
    description: Path of the link. The environments are in a folder next to it, with the same name and an C(s) appended.
    type: path
    required: true
  requirements:
    description: Text of the list, in the format of C(pip --require-hashes).
    type: str
    required: true
  url:
    description: URL of an archive of wheels (C(wheels/NAME.whl)); empty for the Python index.
    type: str
    default: ""
  sha256:
    description: SHA-256 of that archive.
    type: str
    default: ""
  python:
    description: Python program that creates it.
    type: path
    default: /usr/bin/python3
  timeout:
    description: Seconds for the installation.
    type: int
    default: 900
extends_documentation_fragment: [proxy]
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
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.controller.python_environment import Environment, make_plan, version
from ansible.module_utils.trainyard.core.proxy import PROXY, use
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
            **PROXY,
        },
        supports_check_mode=True,
    )
    use(module.params.pop("proxy"))
    wanted = Environment(**{**module.params, "path": Path(module.params["path"])})
    run_plan(module, lambda: make_plan(wanted, version(wanted)))


if __name__ == "__main__":
    main()
