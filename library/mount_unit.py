#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/mounts.py, mount_look.py and mount_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mount_unit
short_description: Keep a file system mounted by a systemd unit
description:
  - Writes the unit, and mounts it now and at each boot. If the unit is newer than the mount, it is remounted, so that
    running the module again completes an interrupted run.
  - If the server is unreachable at boot or at another attempt, a service next to the unit retries every 30 s, because
    systemd itself tries only once.
  - Refuses a folder with other files or another mount, a new mount while pods use the old one, and a second mount while
    a unit of this module mounts something at another path. Nothing is changed then.
  - If the server does not answer, the module does not block. With V(mounted) it fails within its timeout, also in check
    mode; with V(absent) it forces the unmount.
options:
  state:
    description: V(absent) unmounts this module's mount, if no pod uses it, and removes the unit. If the server does not
      answer, the unmount is forced. The folder and other mounts stay.
    type: str
    choices: [mounted, absent]
    default: mounted
  path:
    description: Folder of the mount. It is created if it does not exist.
    type: path
    required: true
  source:
    description: Source in the syntax of mount; required for V(mounted).
    type: str
  fstype:
    description: Type of the file system; required for V(mounted).
    type: str
  options:
    description: Options of mount, in the unit's order.
    type: list
    elements: str
    default: []
  read_ahead_kb:
    description: Read-ahead of the kernel in KiB for the present mount; 0 does not change it. A udev rule sets it for
      later mounts.
    type: int
    default: 0
  timeout:
    description: Seconds for mounting, and for unmounting.
    type: int
    default: 60
  probe_timeout:
    description: Seconds within which the server must answer.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
    description: Reads the state, queries the server of the present mount, and reports the same steps and refusals.
  diff_mode:
    support: full
    description: Shows the unit, and whether the file system is mounted.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Mount the files that the nodes share
  mount_unit:
    path: /srv/trainyard/shared
    source: 10.1.0.5:/export/trainings
    fstype: nfs4
    options: [nfsvers=4.1, hard, _netdev]
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
unit:
  description: Name of the unit.
  type: str
  returned: always
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host.mount_plan import make_plan, make_removal
from ansible.module_utils.trainyard.host.mounts import Mount, observe, probe


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["mounted", "absent"], "default": "mounted"},
            "path": {"type": "path", "required": True},
            "source": {"type": "str"},
            "fstype": {"type": "str"},
            "options": {"type": "list", "elements": "str", "default": []},
            "read_ahead_kb": {"type": "int", "default": 0},
            "timeout": {"type": "int", "default": 60},
            "probe_timeout": {"type": "int", "default": 10},
        },
        required_if=[("state", "mounted", ["source", "fstype"])],
        supports_check_mode=True,
    )
    absent = module.params["state"] == "absent"
    given = {name: value for name, value in module.params.items() if name != "state" and value is not None}
    # Not the real path, because resolving links could block on the server of an existing mount.
    mount = Mount(**{**given, "path": os.path.normpath(given["path"])})

    def plan() -> Plan:
        seen = observe(mount, removal=absent)
        return make_removal(mount, seen) if absent else make_plan(mount, seen)

    def after() -> dict[str, Any]:
        if not (absent or module.check_mode):
            probe(mount)
        return {"unit": mount.unit}

    run_plan(module, plan, after)


if __name__ == "__main__":
    main()
