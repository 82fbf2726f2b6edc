#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/units.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: systemd_unit
short_description: Keep a systemd unit enabled, running with its current configuration, and answering
description:
  - Enables and starts a unit. If a file that its process reads changed after the process started, the unit is
    restarted. Each start by this module records these files in C(/run/trainyard/units), so that setting the clock
    causes no restart. For other starts, times are compared; a time more than a minute in the future is ignored.
  - The restart is decided from the running process. So if a run was interrupted between a change and the restart,
    running it again restarts the unit.
  - Waits for a probe to succeed, with a timeout; the error contains the probe's last answer and the end of the unit's
    journal.
options:
  name:
    description: Unit, with its suffix.
    type: str
    required: true
  state:
    description: Whether it runs. A stopped unit is also disabled at boot, and need not exist; its failed state is
      reset.
    type: str
    choices: [started, stopped]
    default: started
  newer_than:
    description: Glob patterns of the files that the process reads at its start, including its program. The unit's own
      files are always checked.
    type: list
    elements: str
    default: []
  restart:
    description: Restart in any case. This is for check mode, in which a changed file is only planned and not on the
      disk.
    type: bool
    default: false
  ready:
    description: Program and arguments that succeed once the service works.
    type: list
    elements: str
    default: []
  ready_timeout:
    description: Seconds within which the probe must succeed.
    type: int
    default: 60
  ready_remedy:
    description: Remedy for the user if the probe fails; it is the end of the error.
    type: str
    default: ""
  timeout:
    description: Seconds for one start or restart.
    type: int
    default: 120
attributes:
  check_mode:
    description: Reports the same plan. A missing unit is planned for, and a masked one is shown as a change, while a
      normal run refuses both. The probe runs only if nothing would change.
    support: full
  diff_mode:
    description: Shows the state before and after.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Run containerd with its current configuration
  systemd_unit:
    name: "containerd.service"
    newer_than:
      - "/etc/containerd/config.toml"
      - "/usr/bin/containerd"
    restart: "{{ ansible_check_mode and __containerd_files is changed }}"
    ready:
      - "ctr"
      - "version"
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, with the reason of a restart.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host.units import Service, make_plan, observe, wait_ready


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "newer_than": {"type": "list", "elements": "str", "default": []},
            "restart": {"type": "bool", "default": False},
            "ready": {"type": "list", "elements": "str", "default": []},
            "ready_timeout": {"type": "int", "default": 60},
            "ready_remedy": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    service = Service(**module.params)
    planned: list[Plan] = []

    def plan() -> Plan:
        planned.append(make_plan(service, observe(service), check_mode=module.check_mode))
        return planned[0]

    def after() -> dict[str, object]:
        if service.state == "started" and not (module.check_mode and planned[0].changed):
            wait_ready(service)
        return {}

    run_plan(module, plan, after)


if __name__ == "__main__":
    main()
