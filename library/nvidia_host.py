#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/nvidia.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_host
short_description: Refuse a host on which an NVIDIA driver cannot be installed
description:
  - Looks at the GPUs and NVSwitches by PCI, at loaded kernel modules, kernel headers and secure boot, without a driver.
  - Names everything that stands in the way at once. Changes nothing.
options:
  host:
    description: Name of the host, for the error.
    type: str
    required: true
  branch:
    description: Branch of the driver that is to be installed, such as V(580); empty where the distribution chooses it.
    type: str
    default: ""
  open_modules:
    description: Whether the open kernel modules are to be installed, or the proprietary ones.
    type: bool
    default: true
  installed:
    description: Whether the driver is there already; a module that is loaded needs no other key then.
    type: bool
    default: false
  preinstalled:
    description: The driver is the owner's own. Only NVSwitches that no fabric manager sets up are refused then.
    type: bool
    default: false
attributes:
  check_mode:
    description: The same.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look at the host
  nvidia_host:
    host: "{{ inventory_hostname }}"
    branch: "580"
  register: nvidia
"""

RETURN = r"""
gpus:
  description: PCI identifiers of the GPUs, as C(10de:2330).
  returned: always
  type: list
  elements: str
kernel:
  description: Release of the running kernel.
  returned: always
  type: str
headers_lacking:
  description: Packages of kernel headers that dkms lacks for the running kernel, the newest one, or later ones.
  returned: always
  type: list
  elements: str
nouveau:
  description: Whether the kernel's own driver is loaded.
  returned: always
  type: bool
loaded:
  description: Version of the loaded kernel module, or nothing.
  returned: always
  type: str
on_disk:
  description: Version of the kernel module that the next boot loads, or nothing.
  returned: always
  type: str
secure_boot:
  description: Whether the kernel takes signed modules only.
  returned: always
  type: bool
key_enrolled:
  description: Whether the machine knows the key with which dkms signs.
  returned: always
  type: bool
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.host import nvswitch
from ansible.module_utils.trainyard.host.facts import refuse
from ansible.module_utils.trainyard.host.nvidia import module_on_disk, observe, problems


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "branch": {"type": "str", "default": ""},
            "open_modules": {"type": "bool", "default": True},
            "installed": {"type": "bool", "default": False},
            "preinstalled": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    seen = observe(os.uname().release)
    fabric = nvswitch.observe()
    preinstalled = module.params["preinstalled"]
    options = {name: module.params[name] for name in ("open_modules", "installed")}
    found = [] if preinstalled else problems(seen, module.params["branch"], **options)
    found += nvswitch.problems(fabric, installed=preinstalled or module.params["installed"])
    try:
        refuse(module.params["host"], found)
    except TrainyardError as error:
        fail(module, error)
    module.exit_json(changed=False, on_disk=module_on_disk(), **seen.as_dict())


if __name__ == "__main__":
    main()
