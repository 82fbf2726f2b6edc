"""The vendor's package repository of an artefact in the lock file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_origin
short_description: Package repository of an artefact in the lock file
description:
  - Returns for each artefact the apt repository of its vendor - C(apt) (base URL), C(suite) (C(/) for a flat
    repository), C(component) (empty for a flat one), C(key) (URL) and C(signed_by) (its fingerprint).
  - The lock file is the value of the variable C(bundle_lock), by default C(bundle.lock.yml) in the project's root.
options:
  _terms:
    description: Names of artefacts that are packages.
    required: true
"""

EXAMPLES = r"""
- name: Show the package repository of the kubelet
  ansible.builtin.debug:
    msg: "{{ lookup('locked_origin', 'deb_kubelet').apt }}"
"""

RETURN = r"""
_list:
  description: The repositories.
  type: list
  elements: dict
"""


from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from trainyard.site import locked_versions


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        origins = []
        for term in terms:
            upstream = locked_versions.entry(term, variables, self._templar).get("upstream", {})
            if "apt" not in upstream:
                raise AnsibleLookupError(f"The lock file names no apt repository for {term}.")
            shape = {"suite": "/", "component": "", **upstream}
            origins.append({key: shape[key] for key in ("apt", "suite", "component", "key", "signed_by")})
        return origins
