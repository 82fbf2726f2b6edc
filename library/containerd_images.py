#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/images.py, the transfer in the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: containerd_images
short_description: Import images into a node's containerd
description:
  - Copies images that no registry serves to a node, and imports and pins them there, so that the kubelet neither pulls
    them nor removes them as garbage. Images that the node has are not copied again.
  - Older images of the same repositories are unpinned; the kubelet removes them when the disk fills.
  - Each archive is packed once per run, with C(skopeo) on the controller.
options:
  images:
    description: Images to import.
    type: list
    elements: dict
    required: true
    suboptions:
      reference:
        description: Reference that pods use, C(repository@sha256:...).
        type: str
        required: true
      layout:
        description: Folder on the controller with its OCI layout; read only when a node lacks the image.
        type: path
      archive:
        description: OCI archive on the node; set by the action plugin.
        type: path
  timeout:
    description: Seconds for one import.
    type: int
    default: 600
attributes:
  check_mode:
    support: full
    description: Reports the same plan; if containerd is not installed yet, all images count as missing.
  diff_mode:
    support: full
    description: Shows which images are pinned.
requirements:
  - skopeo on the controller
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Deliver an image
  containerd_images:
    images:
      - reference: localhost/trainyard/tensorflow@sha256:0123
        layout: /var/cache/trainyard/artefacts/image_tensorflow-0123456789abcdef/oci
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
missing:
  description: References that the node lacked.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host.images import Image, make_plan, missing, observe

IMAGE = {
    "reference": {"type": "str", "required": True},
    "layout": {"type": "path"},
    "archive": {"type": "path"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "images": {"type": "list", "elements": "dict", "required": True, "options": IMAGE},
            "timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    lacking: list[str] = []

    def plan() -> Plan:
        wanted = [Image(entry["reference"], entry["archive"] or "") for entry in module.params["images"]]
        for image in wanted:
            if not image.digest.startswith("sha256:"):
                raise TrainyardError(f"{image.reference} has no digest; set the reference as repository@sha256:...")
        seen = observe(may_be_absent=module.check_mode)
        lacking.extend(missing(wanted, seen))
        return make_plan(wanted, seen, timeout=module.params["timeout"])

    run_plan(module, plan, lambda: {"missing": lacking})


if __name__ == "__main__":
    main()
