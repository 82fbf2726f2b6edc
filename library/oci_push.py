#!/usr/bin/python
"""Push images from OCI layouts to a registry."""

from __future__ import annotations

DOCUMENTATION = r"""
module: oci_push
short_description: Push images from OCI layouts to a registry
description:
  - Compares the digest behind each tag with the one in the layout and pushes what differs.
  - Blobs that the registry already has are not sent again.
options:
  registry:
    description: Address of the registry, C(https://host:port).
    type: str
    required: true
  ca_file:
    description: Certificate authority of the registry; the system's when left out.
    type: path
  images:
    description: Images with C(reference) (repository and tag), C(layout) (folder) and C(digest).
    type: list
    elements: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Asks the registry; when it does not answer, everything counts as to be pushed.
  diff_mode:
    support: full
    description: Shows the digest behind each tag.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Push an image
  oci_push:
    registry: https://10.84.0.2:5000
    images:
      - reference: registry.k8s.io/pause:3.10.2
        layout: /var/cache/trainyard/artefacts/image_pause-0123456789abcdef/oci
        digest: sha256:0123
"""

RETURN = r"""
steps:
  description: What was pushed, or would be in check mode.
  returned: always
  type: list
  elements: str
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle.oci import Registry, image
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan

CONNECTIONS = 4
"""Questions asked at a time."""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "registry": {"type": "str", "required": True},
            "ca_file": {"type": "path"},
            "images": {"type": "list", "elements": "dict", "required": True},
        },
        supports_check_mode=True,
    )

    def make_plan() -> Plan:
        images = [image(entry["reference"], entry["layout"], entry["digest"]) for entry in module.params["images"]]
        registry = Registry(module.params["registry"], module.params["ca_file"])
        try:
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                found = list(pool.map(lambda wanted: registry.digest(wanted.repository, wanted.tag), images))
        except TrainyardError:
            # A site that is only planned has no registry yet.
            if not module.check_mode:
                raise
            found = [None] * len(images)
        steps = [
            Step(f"Push {wanted.repository}:{wanted.tag}", partial(registry.push, wanted))
            for wanted, digest in zip(images, found, strict=True)
            if digest != wanted.digest
        ]
        names = [f"{wanted.repository}:{wanted.tag}" for wanted in images]
        before = dict(zip(names, found, strict=True))
        return Plan(steps, before, {name: wanted.digest for name, wanted in zip(names, images, strict=True)})

    run_plan(module, make_plan)


if __name__ == "__main__":
    main()
