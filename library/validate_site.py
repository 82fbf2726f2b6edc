#!/usr/bin/python
"""Documentation of the action plugin `validate_site`, which does all the work on the controller."""

DOCUMENTATION = r"""
---
module: validate_site
short_description: Refuse an inventory that cannot work, before anything is touched
description:
  - Looks at the variables of all hosts, the groups, the roles' argument specifications and the lock file, and at
    nothing else. No connection is made, no fact is gathered, no lookup except C(locked_version) is carried out.
  - All problems are reported together in the message. Each names the variable or host, the value and the remedy.
  - Variables that begin with C(ansible_) or an underscore are not looked at. Values that depend on facts, vaulted
    values and undefined variables cannot be judged and are passed over.
options:
  project:
    description: The checkout that holds C(roles/) and C(bundle.lock.yml). By default the one that holds the plugin.
    type: path
  verb:
    description:
      - The playbook that is called. V(train) and V(train_stop) take short names from the command line, which are
        checked, too; V(train) judges the training that they ask for in the place of those of the site.
    type: str
    choices: [site, train, train_stop]
    default: site
author:
  - trainyard
attributes:
  check_mode:
    description: The same in check mode, nothing is ever changed.
    support: full
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  validate_site:
"""

RETURN = r"""
hosts:
  description: Number of hosts of the inventory.
  returned: always
  type: int
  sample: 4
call:
  description:
    - Of V(train) its short names as C(given), with C(wait), C(resume) and C(replace); of V(train_stop) its short names.
  returned: for these two verbs
  type: dict
"""
