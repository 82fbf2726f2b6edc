#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/packages.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: apt_packages
short_description: Install Debian packages at given versions and hold them
description:
  - Combines a refresh, an installation and a hold (C(ansible.builtin.apt) and C(ansible.builtin.dpkg_selections)) in
    one task. Check mode also works on a host whose apt sources are only planned.
  - The package index is updated before an installation if the apt sources have changed since the last update, if it
    lacks a package or version, or if a download fails.
  - An interrupted installation is completed first. An installation that would remove other packages is refused.
options:
  packages:
    description: Packages in apt's syntax, C(NAME) for any version or C(NAME=PATTERN) (V(kubelet=1.36.3-*)).
    type: list
    elements: str
    required: true
  hold:
    description: Hold the packages, so that system upgrades do not change them.
    type: bool
    default: false
  may_remove:
    description:
      - Packages that the installation may remove, as names or patterns (V(nvidia-utils-*)).
      - Packages that match a pattern with a leading V(!) are never removed.
    type: list
    elements: str
    default: []
  may_downgrade:
    description: Allow downgrades, which apt refuses by default.
    type: bool
    default: false
  frozen_by:
    description:
      - If this file exists, the host is in use with its present versions, and a different version of an installed
        package is refused.
      - Check mode shows the difference as a change and continues with the rest.
    type: path
    default: ""
  look_up:
    description: Also in check mode, refuse missing packages that no apt source has.
    type: bool
    default: false
  timeout:
    description: Seconds for one run of apt-get.
    type: int
    default: 600
  busy_timeout:
    description: Seconds to wait, before a change, until cloud-init has finished and no other program uses dpkg.
    type: int
    default: 600
extends_documentation_fragment: [proxy]
attributes:
  check_mode:
    description: Reports the same plan, based on the installed packages; the index is read only with O(look_up).
    support: full
  diff_mode:
    description: Shows versions and holds before and after.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Install containerd
  apt_packages:
    packages: ["containerd.io=2.3.4-*"]
    hold: true
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.proxy import PROXY, use
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host import first_boot
from ansible.module_utils.trainyard.host.packages import Packages, dpkg_was_interrupted, installed


def _split(package: str) -> tuple[str, str]:
    """Split `NAME` or `NAME=PATTERN` into name and version pattern; an empty pattern means any version."""
    name, _, pattern = package.partition("=")
    return name, pattern


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "required": True},
            "hold": {"type": "bool", "default": False},
            "may_remove": {"type": "list", "elements": "str", "default": []},
            "may_downgrade": {"type": "bool", "default": False},
            "frozen_by": {"type": "path", "default": ""},
            "look_up": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 600},
            "busy_timeout": {"type": "int", "default": 600},
            **PROXY,
        },
        supports_check_mode=True,
    )
    use(module.params["proxy"])
    packages = Packages(
        wanted=dict(_split(package) for package in module.params["packages"]),
        hold=module.params["hold"],
        may_remove=module.params["may_remove"],
        may_downgrade=module.params["may_downgrade"],
        frozen_by=module.params["frozen_by"] if os.path.exists(module.params["frozen_by"]) else "",
        timeout=module.params["timeout"],
        planning=module.check_mode,
    )

    def make_plan() -> Plan:
        seen = installed()
        if packages.missing(seen) or packages.unfinished(seen) or dpkg_was_interrupted():
            # Another dpkg at work leaves the same records as an interrupted one.
            first_boot.require_idle(module.params["busy_timeout"])
            seen = installed()
        if module.params["look_up"] and (missing := packages.missing(seen)):
            packages.look_up(missing)
        return packages.plan(seen, dpkg_was_interrupted())

    run_plan(module, make_plan)


if __name__ == "__main__":
    main()
