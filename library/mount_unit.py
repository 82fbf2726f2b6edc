#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/mounts.py, mount_look.py and mount_plan.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mount_unit
short_description: Keep a file system mounted by a unit of systemd
description:
  - Writes the unit, mounts it now and at every boot, and mounts it anew where the unit is newer than the mount, so that
    a run that was cut off is made good by the next.
  - A server that is away when the host boots, or at any other try, is tried again every 30 s by a service beside the
    unit; systemd itself tries once.
  - A folder with other files, or with somebody else's mount, is refused, and so is a new mount while pods use the old
    one, or while a unit of this module mounts something at another path; nothing has been changed then.
  - A server that does not answer ends the module in time, in check mode, too; nothing waits for it.
options:
  state:
    description: V(absent) unmounts what this module has mounted, while no pod uses it, and removes the unit; by force
      where the server does not answer. The folder stays, and what others have mounted.
    type: str
    choices: [mounted, absent]
    default: mounted
  path:
    description: Where to mount it. The folder is made where there is none.
    type: path
    required: true
  source:
    description: What is mounted, as mount takes it; needed for V(mounted).
    type: str
  fstype:
    description: Type of the file system; needed for V(mounted).
    type: str
  options:
    description: Options of mount, in the unit's order.
    type: list
    elements: str
    default: []
  read_ahead_kb:
    description: How much the kernel reads ahead, in KiB; 0 leaves that alone. For what is mounted now; a rule of udev
      does it for later mounts.
    type: int
    default: 0
  timeout:
    description: Seconds for mounting, and for unmounting.
    type: int
    default: 60
  probe_timeout:
    description: Seconds in which the server has to answer.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
    description: Reads, asks the server of what is mounted, and reports the same steps and refusals.
  diff_mode:
    support: full
    description: Shows the unit, and whether it is mounted.
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
  description: What was (in check mode would be) done, one sentence each.
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
from ansible.module_utils.trainyard.host.mount_look import observe, probe
from ansible.module_utils.trainyard.host.mount_plan import make_plan, make_removal
from ansible.module_utils.trainyard.host.mounts import Mount


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
    # Not the real path: to look at links would be to ask the server of what is mounted there.
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
