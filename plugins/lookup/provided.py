"""Facts that the roles provide about themselves."""

from __future__ import annotations

DOCUMENTATION = r"""
name: provided
short_description: Facts that all roles provide about themselves
description:
  - Returns the value of the kind for each role that has it in its C(meta/provides.yml). So the checks of ports, the
    reset of hosts and the verdict know a new role.
  - Kinds are C(ports) (mappings of port, protocol, group, program, from, for, and variable, whose value replaces the
    port), C(files) (group -> files that the role writes completely),
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
        found = [(term, self._templar.template(each)) for term in terms for each in provided(term, self._loader)]
        return [self._ports(each, variables or {}) if term == "ports" else each for term, each in found]

    def _ports(self, ports, variables):
        """Return the ports with the numbers of this host's variables."""
        return [
            {**port, "port": int(self._templar.template(variables.get(port.get("variable"), port["port"])))}
            for port in ports
        ]
