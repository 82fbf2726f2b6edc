#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/bundle/index.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: registry_tags
short_description: Find tags of a registry with an unexpected digest
description:
  - Queries a registry for the digest behind each tag, and changes nothing. Needs no program and no login.
options:
  registry:
    description: Address of the registry, C(https://host:port).
    type: str
    required: true
  ca_file:
    description: CA of the registry's certificate; the default is the system's CAs.
    type: path
  images:
    description: The images, each with its reference (repository and tag) and the digest of its manifest.
    type: list
    elements: dict
    required: true
    suboptions:
      reference:
        description: Repository and tag below the registry.
        type: str
        required: true
      digest:
        description: Digest of the image's manifest.
        type: str
        required: true
attributes:
  diff_mode:
    support: none
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Check a tag
  registry_tags:
    registry: https://10.84.0.2:5000
    images:
      - reference: registry.k8s.io/pause:3.10.2
        digest: sha256:0123
"""

RETURN = r"""
differing:
  description: Tags with an unexpected digest, each to the digest in the registry; empty if the tag does not exist.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle.index import differing
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail

IMAGE = {"reference": {"type": "str", "required": True}, "digest": {"type": "str", "required": True}}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "registry": {"type": "str", "required": True},
            "ca_file": {"type": "path"},
            "images": {"type": "list", "elements": "dict", "required": True, "options": IMAGE},
        },
        supports_check_mode=True,
    )
    params = module.params
    images = {image["reference"]: image["digest"] for image in params["images"]}
    try:
        found = differing(params["registry"], images, params["ca_file"] or "")
    except TrainyardError as error:
        fail(module, error)
    module.exit_json(changed=False, differing=found)


if __name__ == "__main__":
    main()
