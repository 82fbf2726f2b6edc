"""The index of artefacts that a mirror publishes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: bundle_index
short_description: The index of artefacts that a mirror publishes
description:
  - Returns the text of the index.
  - On a controller that builds no artefacts, the module C(bundle_index) reads their data from this index.
options:
  _terms:
    description: The artefacts, as the module C(bundle) returns them.
    required: true
  lock:
    description: Path of the lock file.
    required: true
  project:
    description: Root of the repository.
    required: true
"""

EXAMPLES = r"""
- name: Show the index
  ansible.builtin.debug:
    msg: "{{ lookup('bundle_index', bundle_artefacts, lock=bundle_lock, project=bundle_project) }}"
"""

RETURN = r"""
_raw:
  description: The index, JSON.
  type: str
"""

from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from trainyard.bundle import index
from trainyard.core.errors import TrainyardError


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        try:
            return [index.render(terms[0], Path(kwargs["lock"]).expanduser(), Path(kwargs["project"]))]
        except TrainyardError as error:
            raise AnsibleLookupError(str(error)) from error
