#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/nvidia.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_host
short_description: Refuse a host on which an NVIDIA driver cannot be installed
description:
  - Reads GPUs and NVSwitches on PCI, loaded kernel modules, kernel headers and secure boot, without a driver.
  - Reports all obstacles at once. Changes nothing.
options:
  host:
    description: Name of the host, for the error.
    type: str
    required: true
  branch:
    description: Branch of the driver to install, such as V(580); empty if the distribution chooses it.
    type: str
    default: ""
  open_modules:
    description: Whether to install the open kernel modules instead of the proprietary ones.
    type: bool
    default: true
  installed:
    description: Whether the driver is already installed; a loaded module then needs no enrolled key.
    type: bool
    default: false
  signed:
    description: Whether the distribution has signed the packages' modules, so that no key must be enrolled.
    type: bool
    default: false
  preinstalled:
    description: The host's owner manages the driver. Only NVSwitches without a fabric manager are refused then.
    type: bool
    default: false
attributes:
  diff_mode:
    description: No changes to show.
    support: none
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Check the host
  nvidia_host:
    host: "{{ inventory_hostname }}"
    branch: "580"
  register: nvidia
"""

RETURN = r"""
gpus:
  description: PCI identifiers of the GPUs, such as C(10de:2330).
  returned: always
  type: list
  elements: str
kernel:
  description: Release of the running kernel.
  returned: always
  type: str
headers_lacking:
  description: Missing packages of kernel headers, which dkms needs for the running kernel, the newest one, or later
    ones.
  returned: always
  type: list
  elements: str
nouveau:
  description: Whether the kernel's own driver is loaded.
  returned: always
  type: bool
loaded:
  description: Version of the loaded kernel module, or empty.
  returned: always
  type: str
on_disk:
  description: Version of the kernel module that the next boot loads, or empty.
  returned: always
  type: str
secure_boot:
  description: Whether the kernel accepts only signed modules.
  returned: always
  type: bool
key_enrolled:
  description: Whether the machine trusts the key with which dkms signs.
  returned: always
  type: bool
key:
  description: Certificate of that key.
  returned: always
  type: str
key_command:
  description: Commands that create the key; empty if it exists.
  returned: always
  type: str
uninstaller:
  description: Program that removes a driver of NVIDIA's .run program; empty without one.
  returned: always
  type: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.host import nvidia
from ansible.module_utils.trainyard.host.nvidia import module_on_disk, observe, problems
from ansible.module_utils.trainyard.host.preflight_checks import refuse


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "branch": {"type": "str", "default": ""},
            "open_modules": {"type": "bool", "default": True},
            "installed": {"type": "bool", "default": False},
            "signed": {"type": "bool", "default": False},
            "preinstalled": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    seen = observe(os.uname().release)
    fabric = nvidia.observe_nvswitches()
    preinstalled = module.params["preinstalled"]
    options = {name: module.params[name] for name in ("open_modules", "installed", "signed")}
    found = [] if preinstalled else problems(seen, module.params["branch"], **options)
    found += nvidia.nvswitch_problems(fabric, installed=preinstalled or module.params["installed"])
    try:
        refuse(module.params["host"], found)
    except TrainyardError as error:
        fail(module, error)
    module.exit_json(changed=False, on_disk=module_on_disk(), **seen.as_dict())


if __name__ == "__main__":
    main()
