"""Where the vendor publishes an artefact of the lock file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_origin
short_description: Vendor's origin of an artefact in the lock file
description:
  - Returns the entry C(upstream) of each named artefact of C(bundle.lock.yml) in the project's root.
options:
  _terms:
    description: Names of artefacts.
    required: true
"""

EXAMPLES = r"""
- name: Show the repository of the kubelet
  ansible.builtin.debug:
    msg: "{{ lookup('locked_origin', 'deb_kubelet').apt }}"
"""

RETURN = r"""
_list:
  description: The origins; of a package C(apt), C(suite), C(component), C(key) and C(signed_by).
  type: list
  elements: dict
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
        for term in terms:
            if "upstream" not in _artefacts().get(term, {}):
                raise AnsibleLookupError(f"The lock file has no artefact {term} with an upstream origin.")
        return [dict(_artefacts()[term]["upstream"]) for term in terms]
