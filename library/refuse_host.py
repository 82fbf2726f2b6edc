#!/usr/bin/python
"""Documentation of the action plugin `refuse_host`, which does all the work on the controller."""

DOCUMENTATION = r"""
---
module: refuse_host
short_description: Refuse a host with a reason from the table of checks
description:
  - Fails with a reason from the table in C(src/trainyard/host/preflight_checks.py), or with all reasons that the checks
    of a host have collected. It makes no connection.
options:
  code:
    description: Key of the table.
    type: str
  values:
    description: Observed values, by the names in the texts of the table.
    type: dict
    default: {}
  reasons:
    description: Reasons with code, cause and remedy, instead of O(code). An empty list refuses nothing.
    type: list
    elements: dict
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Refuse an address that the host does not have
  refuse_host:
    code: node_address
    values: {address: 10.0.0.7, found: 10.0.0.8}
"""

RETURN = r"""
reasons:
  description: The reasons, each with code, cause and remedy.
  returned: if the host is refused
  type: list
  elements: dict
"""
