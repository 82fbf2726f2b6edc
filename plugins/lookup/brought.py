"""What the roles bring to hosts and cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: brought
short_description: What all roles bring to hosts and cluster
description:
  - Returns for each role that brings something of the named kind what C(meta/brings.yml) says of it, so that a new role
    is known to those who check ports, reset hosts or judge the cluster.
  - Kinds are C(ports) (group -> port -> program), C(files) (group -> files that the role writes as a whole),
    C(kernel_features), C(namespaces), C(reset_paths) and C(reset_interfaces).
options:
  _terms:
    description: The kinds.
    required: true
"""

EXAMPLES = r"""
- name: Show the namespaces of the cluster's own parts
  ansible.builtin.debug:
    msg: "{{ query('brought', 'namespaces') | flatten | unique }}"
"""

RETURN = r"""
_list:
  description: What each role brings.
  type: list
  elements: raw
"""

import sys
from pathlib import Path

from ansible.plugins.lookup import LookupBase

# The root package is not on Ansible's path.
if str(ROOT := Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(ROOT))

from trainyard.brought import brought


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        return [self._templar.template(found) for term in terms for found in brought(term, self._loader)]
