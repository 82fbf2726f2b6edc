#!/usr/bin/python
"""Documentation of the action plugin `host_report`, which does all the work on the controller."""

DOCUMENTATION = r"""
---
module: host_report
short_description: Report which hosts can be nodes, and why the others cannot
description:
  - Reads the results of the checks of this run from the variables of the hosts. It makes no connection.
options:
  hosts:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  later:
    description: Those that a lab creates later.
    type: list
    elements: str
    default: []
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Report the hosts
  host_report:
    hosts: [cp1, worker1]
"""

RETURN = r"""
hosts:
  description: For each host its state (works, refused, unreachable, later), system, machine, and reasons.
  returned: always
  type: dict
report:
  description: The same as text, a line for each host.
  returned: always
  type: list
  elements: str
"""
