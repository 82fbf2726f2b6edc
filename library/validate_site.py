#!/usr/bin/python
"""Documentation of the action plugin `validate_site`, which does all the work on the controller."""

DOCUMENTATION = r"""
---
module: validate_site
short_description: Refuse an invalid inventory before anything is changed
description:
  - Checks the variables of all hosts, the groups, the roles' argument specifications and the lock file. It makes no
    connection, gathers no facts, and executes no lookup except C(locked_version).
  - All problems are reported together in the message, each with the variable or host, the value and the remedy.
  - Variables with the prefix C(ansible_) or an underscore are not checked. Values that depend on facts, vaulted values
    and undefined variables cannot be checked and are skipped.
options:
  project:
    description: The checkout with C(roles/) and C(bundle.lock.yml). The default is the one that contains the plugin.
    type: path
  verb:
    description:
      - The playbook that runs. V(train) and V(train_stop) accept short names on the command line, which are also
        checked. V(train) checks the requested training instead of the site's.
    type: str
    choices: [site, train, train_stop]
    default: site
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Refuse an invalid inventory
  validate_site:
"""

RETURN = r"""
hosts:
  description: Number of hosts in the inventory.
  returned: always
  type: int
  sample: 4
call:
  description:
    - For V(train), its short names as C(given), with C(wait), C(resume) and C(replace); for V(train_stop), its short
      names.
  returned: for these two verbs
  type: dict
"""
