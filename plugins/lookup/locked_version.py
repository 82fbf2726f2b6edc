"""The version of an artefact in the lock file, without a leading "v"."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_version
short_description: Version of an artefact in the lock file
description:
  - Returns the version of each named artefact of C(bundle.lock.yml) in the project's root, without a leading C(v).
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

from functools import lru_cache
from pathlib import Path

import yaml
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

LOCK = Path(__file__).resolve().parents[2] / "bundle.lock.yml"


@lru_cache(maxsize=1)
def _artefacts() -> dict[str, dict]:
    return yaml.safe_load(LOCK.read_text(encoding="utf-8"))["artefacts"]


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        versions = []
        for term in terms:
            if term not in _artefacts():
                raise AnsibleLookupError(f"The lock file has no artefact {term}.")
            versions.append(str(_artefacts()[term]["version"]).removeprefix("v"))
        return versions
