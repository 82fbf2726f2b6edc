"""Facts that the roles provide about themselves."""

from __future__ import annotations

DOCUMENTATION = r"""
name: provided
short_description: Facts that all roles provide about themselves
description:
  - Returns the value of the kind for each role that has it in its C(meta/provides.yml). So the checks of ports, the
    reset of hosts and the verdict know a new role.
  - Kinds are C(ports) (group -> port -> program), C(files) (group -> files that the role writes completely),
    C(kernel_features), C(namespaces), C(reset_paths) and C(reset_interfaces).
options:
  _terms:
    description: The kinds.
    required: true
"""

EXAMPLES = r"""
- name: Show the namespaces of the cluster's own parts
  ansible.builtin.debug:
    msg: "{{ query('provided', 'namespaces') | flatten | unique }}"
"""

RETURN = r"""
_list:
  description: The value of each role.
  type: list
  elements: raw
"""


from ansible.plugins.lookup import LookupBase

from trainyard.site.role_facts import provided


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        return [self._templar.template(found) for term in terms for found in provided(term, self._loader)]
