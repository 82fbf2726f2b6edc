#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/controller/credentials.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: service_credentials
short_description: Keep the credentials of a systemd service
description:
  - Writes each text into a file of its own for C(LoadCredentialEncrypted=) where C(systemd-creds) of the host can
    encrypt, and for C(LoadCredential=) otherwise, readable by root alone. What is not named is removed.
  - No text is part of a result, a diff or an argument of a program.
options:
  folder:
    description: Folder of the files, which nobody else uses.
    type: path
    required: true
  texts:
    description: Name of each credential and its text; none removes all.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Reports the same plan; whether the host can encrypt is tried in memory.
  diff_mode:
    support: full
    description: Names the credentials, and says whether each is as it should be.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep the key of the service
  service_credentials:
    folder: /etc/trainyard/credentials
    texts:
      ssh_key: "{{ lookup('ansible.builtin.file', key_file, rstrip=false) }}"
  no_log: true
"""

RETURN = r"""
encrypted:
  description: Whether the files are encrypted.
  returned: always
  type: bool
paths:
  description: Name -> file.
  returned: always
  type: dict
steps:
  description: What was done, or in check mode would be done.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.controller.credentials import Credentials, can_encrypt, make_plan
from ansible.module_utils.trainyard.core.runner import run_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "texts": {"type": "dict", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    wanted = Credentials(Path(module.params["folder"]), module.params["texts"], can_encrypt())
    paths = {name: str(wanted.path(name)) for name in wanted.texts}
    run_plan(module, lambda: make_plan(wanted), lambda: {"encrypted": wanted.encrypts, "paths": paths})


if __name__ == "__main__":
    main()
