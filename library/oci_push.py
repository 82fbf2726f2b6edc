#!/usr/bin/python
"""Push images from OCI layouts to a registry."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: oci_push
short_description: Push images from OCI layouts to a registry
description:
  - Compares the digest behind each tag with the one in the layout, and pushes images that differ, with C(skopeo).
  - Blobs that the registry has are not pushed again. Digests are preserved.
options:
  registry:
    description: Address of the registry, C(https://host:port).
    type: str
    required: true
  ca_file:
    description: CA of the registry's certificate; the default is the system's CAs.
    type: path
  client_cert:
    description: Client certificate for the registry.
    type: path
  client_key:
    description: Private key of O(client_cert).
    type: path
  auth_file:
    description: File with logins, in the format of C(skopeo login) and C(podman login).
    type: path
  username:
    description: User name of the login, which is tested first.
    type: str
  password:
    description: Password or token of O(username).
    type: str
  probe:
    description: Only check that the registry answers and accepts the login.
    type: bool
    default: false
  images:
    description: The images.
    type: list
    elements: dict
    required: true
    suboptions:
      reference:
        description: Repository and tag below the registry.
        type: str
        required: true
      layout:
        description: Folder of the OCI layout.
        type: path
        required: true
      digest:
        description: Digest of the image's manifest.
        type: str
        required: true
extends_documentation_fragment: [proxy]
attributes:
  check_mode:
    support: full
    description: Queries the registry. If it does not answer, or its CA does not exist yet, all images count as missing;
      a refused certificate or login is an error.
  diff_mode:
    support: full
    description: Shows the digest behind each tag.
requirements:
  - skopeo
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
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle.registry import Access, Image, make_plan, registry
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.proxy import PROXY, use
from ansible.module_utils.trainyard.core.runner import fail, run_plan

IMAGE = {
    "reference": {"type": "str", "required": True},
    "layout": {"type": "path", "required": True},
    "digest": {"type": "str", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "registry": {"type": "str", "required": True},
            "ca_file": {"type": "path"},
            "client_cert": {"type": "path"},
            "client_key": {"type": "path", "no_log": False},
            "auth_file": {"type": "path"},
            "username": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "probe": {"type": "bool", "default": False},
            "images": {"type": "list", "elements": "dict", "required": True, "options": IMAGE},
            **PROXY,
        },
        mutually_exclusive=[("auth_file", "username")],
        required_together=[("client_cert", "client_key"), ("username", "password")],
        supports_check_mode=True,
    )
    use(module.params["proxy"])
    names = ("ca_file", "client_cert", "client_key", "auth_file", "username", "password")
    access = Access(**{name: module.params[name] or "" for name in names})
    images = [Image(entry["reference"], Path(entry["layout"]), entry["digest"]) for entry in module.params["images"]]
    try:
        with registry(module.params["registry"], access) as there:
            if module.params["probe"]:
                there.open()
                for image in images:
                    there.digest(image.reference)
                module.exit_json(changed=False, steps=[])
            run_plan(module, lambda: make_plan(there, images, may_be_absent=module.check_mode))
    except TrainyardError as error:
        fail(module, error)


if __name__ == "__main__":
    main()
