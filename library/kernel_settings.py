#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/kernel.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_settings
short_description: Check kernel features, set sysctls, turn swap off
description:
  - Checks that the running kernel has the required features, built in or as a module, and fails with the names of the
    missing ones.
  - Loads a module only if the running kernel has it and the feature is not present yet.
  - Sets sysctls of the running kernel that differ; M(host_files) writes the file for the next boot.
  - Turns swap off and comments it out in C(/etc/fstab). Also masks C(swap.target), with which systemd turns on swap
    that is not in that file, such as zram or a typed partition. Inside a container, the machine's swap is not changed.
options:
  features:
    description: Features by name.
    type: list
    elements: str
    choices: [overlay, br_netfilter, nf_conntrack, nf_tables, ip_set, veth, vxlan, fuse]
    default: []
  sysctls:
    description: Parameter name to value.
    type: dict
    default: {}
  swap_off:
    description: Whether to turn swap off.
    type: bool
    default: false
attributes:
  check_mode:
    description: Reports the same plan.
    support: full
  diff_mode:
    description: Shows modules, values and fstab before and after.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Prepare the kernel
  kernel_settings:
    features: ["overlay", "br_netfilter"]
    sysctls:
      net.ipv4.ip_forward: "1"
    swap_off: true
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host.kernel import FEATURES, Kernel


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "features": {"type": "list", "elements": "str", "choices": list(FEATURES), "default": []},
            "sysctls": {"type": "dict", "default": {}},
            "swap_off": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    kernel = Kernel(
        features=module.params["features"],
        sysctls={name: str(value) for name, value in module.params["sysctls"].items()},
        swap_off=module.params["swap_off"],
    )

    def plan() -> Plan:
        made = kernel.plan()
        for warning in kernel.warnings:
            module.warn(warning)
        return made

    run_plan(module, plan)


if __name__ == "__main__":
    main()
