#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/kernel.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_settings
short_description: Check kernel features, set sysctls, turn swap off
description:
  - Looks whether the running kernel has the wanted features, whether built in or as a module, and fails with the
    names of those it lacks.
  - Loads a module only where there is one for the running kernel and its feature is not there yet.
  - Sets the running kernel's sysctls that differ; the file for the next boot is written by M(host_files).
  - Turns swap off and comments it out in C(/etc/fstab), if there is any, and masks C(swap.target), by which systemd
    turns on what no line of that file names, such as zram or a typed partition. Inside a container the machine's swap
    is left alone.
options:
  features:
    description: Features by name.
    type: list
    elements: str
    choices: [overlay, br_netfilter, nf_conntrack, nf_tables, ip_set, veth, vxlan, fuse]
    default: []
  sysctls:
    description: Values by name.
    type: dict
    default: {}
  swap_off:
    description: Whether swap has to be off.
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
  description: What was done, or in check mode would be done.
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
