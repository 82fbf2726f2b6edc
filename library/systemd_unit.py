#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/units.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: systemd_unit
short_description: Keep a systemd unit enabled, running with its present configuration, and answering
description:
  - Enables and starts a unit, and restarts it when a file that its process reads was changed after the process
    started. A start of this module records what the unit reads, in C(/run/trainyard/units), so that a clock that is set
    restarts nothing. Any other start is judged by times, and a time more than a minute ahead says nothing.
  - The restart follows from the running process, so a run that was interrupted between a change and the
    restart is made good by the next.
  - Waits a bounded time until a probe succeeds; the error holds the probe's last answer and the end of the unit's
    journal.
options:
  name:
    description: Unit, with its suffix.
    type: str
    required: true
  state:
    description: Whether it runs. A stopped unit is not started at boot either, and need not exist; that it has failed
      is forgotten.
    type: str
    choices: [started, stopped]
    default: started
  newer_than:
    description: Glob patterns of the files that the process reads when it starts, its program included. The unit's
      own files are always looked at.
    type: list
    elements: str
    default: []
  restart:
    description: Restart in any case. For check mode, where a changed file is only planned and cannot be seen on the
      disk.
    type: bool
    default: false
  ready:
    description: Program and arguments that succeed when the service works.
    type: list
    elements: str
    default: []
  ready_timeout:
    description: Seconds that the probe may take to succeed.
    type: int
    default: 60
  ready_remedy:
    description: What the user can do where the probe does not succeed; the error ends with it.
    type: str
    default: ""
  timeout:
    description: Seconds for one start or restart.
    type: int
    default: 120
attributes:
  check_mode:
    description: Reports the same plan. A unit that does not exist yet is planned for, a masked one shown as a change,
      where any other run refuses it; the probe runs only where nothing would change.
    support: full
  diff_mode:
    description: Shows the state before and after.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Run containerd with its present configuration
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
  description: What was done, or in check mode would be done, with the reason of a restart.
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
