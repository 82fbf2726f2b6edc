"""The vendors' images in the lock file with their digests."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_images
short_description: Vendors' images in the lock file with their digests
description:
  - Returns one mapping from each reference to the digest that the vendor publishes under it. For an image with several
    platforms this is the digest of the index.
  - Images without a digest in the lock are left out.
  - The lock file is the value of the variable C(bundle_lock), by default C(bundle.lock.yml) in the project's root.
options:
  _terms:
    description: Names of artefacts; by default all images.
"""

EXAMPLES = r"""
- name: Show what the lock pins
  ansible.builtin.debug:
    msg: "{{ lookup('locked_images') }}"  # {registry.k8s.io/pause:3.10.2: "sha256:...", ...}
"""

RETURN = r"""
_list:
  description: One mapping.
  type: list
  elements: dict
"""


from ansible.plugins.lookup import LookupBase

from trainyard.site import locked_versions


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        found = locked_versions.artefacts(variables, self._templar)
        wanted = {term: locked_versions.entry(term, variables, self._templar) for term in terms} or found
        pins = (entry.get("upstream", {}).get("image", "").partition("@") for entry in wanted.values())
        return [{reference: digest for reference, _, digest in pins if digest.startswith("sha256:")}]
