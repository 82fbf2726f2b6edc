"""The versions of CUDA of the images in the lock file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: locked_cuda
short_description: CUDA of the images in the lock file
description:
  - Returns one mapping from each image with CUDA to its version of CUDA.
  - The lock file is the value of the variable C(bundle_lock), by default C(bundle.lock.yml) in the project's root.
options:
  _terms:
    description: None.
"""

EXAMPLES = r"""
- name: Show which images have CUDA
  ansible.builtin.debug:
    msg: "{{ lookup('locked_cuda') }}"  # {image_tensorflow_gpu: "12.5"}
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
        return [locked_versions.cuda(locked_versions.artefacts(variables, self._templar))]
