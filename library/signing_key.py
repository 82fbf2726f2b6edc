#!/usr/bin/python
"""Fetch the signing key of a package repository and keep it in a file."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: signing_key
short_description: Keep the signing key of a package repository
description:
  - Fetches a key file in each run, because vendors renew the dates of their keys. The file is refused unless it
    contains exactly the key with this fingerprint. The key is stored armored in a file.
  - If the URL does not answer, an existing file with that fingerprint is used, with a warning.
options:
  url:
    description: URL of the key file, armored or binary.
    type: str
    required: true
  fingerprint:
    description: Fingerprint of the primary key, forty hexadecimal digits.
    type: str
    required: true
  path:
    description: File for the key. Its folder is created.
    type: path
    required: true
extends_documentation_fragment: [proxy]
attributes:
  check_mode:
    support: full
    description: Fetches and compares the key, and reports whether the file would change.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Fetch the key of the Kubernetes repository
  signing_key:
    url: https://pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key
    fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436
    path: /var/lib/trainyard/keys/kubernetes.asc
  delegate_to: localhost
"""

RETURN = r"""
key:
  description: The armored key.
  returned: success
  type: str
"""

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle.vendor import vendor_apt
from ansible.module_utils.trainyard.bundle.vendor.http import HttpError
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.proxy import PROXY, use


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "fingerprint": {"type": "str", "required": True},
            "path": {"type": "path", "required": True},
            **PROXY,
        },
        supports_check_mode=True,
    )
    use(module.params["proxy"])
    path = Path(module.params["path"])
    fingerprint = module.params["fingerprint"].replace(" ", "").upper()
    kept = path.read_text(encoding="ascii", errors="replace") if path.is_file() else ""
    try:
        key = vendor_apt.fetch_key(module.params["url"], fingerprint)
    except HttpError as error:
        if vendor_apt.fingerprints(kept.encode()) != [fingerprint]:
            module.fail_json(msg=str(error))
        module.warn(f"{error} The key of the last run in {path} is used; it may have expired since.")
        key = kept
    except TrainyardError as error:
        module.fail_json(msg=str(error))
    changed = key != kept
    if changed and not module.check_mode:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(key)
        module.atomic_move(partial, str(path))
    module.exit_json(changed=changed, key=key)


if __name__ == "__main__":
    main()
