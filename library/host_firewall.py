#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/firewall_table.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_firewall
short_description: Load, keep or remove the site's own nftables table
description:
  - Loads the table C(inet trainyard). If no C(confirmed) call over a new connection follows in time, a timer of systemd
    restores the old state. Tables of others are never touched.
  - Compares the rules as the kernel lists them, so a table that was changed by hand is loaded again.
options:
  state:
    description: C(armed) loads O(content) for O(seconds). C(confirmed) stops the timer and keeps the table in
      C(/etc/trainyard/firewall.nft). C(absent) removes both.
    type: str
    choices: [armed, confirmed, absent]
    required: true
  content:
    description: File for C(nft --file) that replaces the whole table, for C(armed).
    type: str
    default: ""
  seconds:
    description: Time in which C(confirmed) must come.
    type: int
    default: 60
  over_ssh:
    description: Whether C(confirmed) requires that its SSH connection is newer than the table.
    type: bool
    default: true
attributes:
  check_mode:
    description: Reports the same plan.
    support: full
  diff_mode:
    description: Shows the rules before and after, as nft lists them in JSON.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Load the table until it is confirmed
  host_firewall:
    state: armed
    content: "{{ lookup('ansible.builtin.template', 'firewall.nft.j2') }}"

- name: Confirm the table over a new connection
  host_firewall:
    state: confirmed
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
from ansible.module_utils.trainyard.host import firewall_table


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["armed", "confirmed", "absent"], "required": True},
            "content": {"type": "str", "default": ""},
            "seconds": {"type": "int", "default": 60},
            "over_ssh": {"type": "bool", "default": True},
        },
        required_if=[("state", "armed", ["content"])],
        supports_check_mode=True,
    )
    given = module.params

    def plan() -> Plan:
        if given["state"] == "armed":
            return firewall_table.plan_armed(given["content"], given["seconds"], can_be_missing=module.check_mode)
        if given["state"] == "confirmed":
            return firewall_table.plan_confirmed(over_ssh=given["over_ssh"])
        return firewall_table.plan_absent()

    run_plan(module, plan)


if __name__ == "__main__":
    main()
