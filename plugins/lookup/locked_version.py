"""The version of an artefact in the lock file, without a leading "v"."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_version
short_description: Version of an artefact in the lock file
description:
  - Returns the version of each artefact without a leading C(v).
  - The lock file is the value of the variable C(bundle_lock), by default C(bundle.lock.yml) in the project's root.
options:
  _terms:
    description: Names of artefacts.
    required: true
"""

EXAMPLES = r"""
- name: Show the locked version of Kubernetes
  ansible.builtin.debug:
    msg: "{{ lookup('locked_version', 'kubernetes') }}"
"""

RETURN = r"""
_list:
  description: The versions.
  type: list
  elements: str
"""


from ansible.plugins.lookup import LookupBase

from trainyard.site import locked_versions


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        entries = [locked_versions.entry(term, variables, self._templar) for term in terms]
        return [str(entry["version"]).removeprefix("v") for entry in entries]
