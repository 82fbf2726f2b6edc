#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/controller/credentials.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: service_credentials
short_description: Keep the credentials of a systemd service
description:
  - Writes each text to a file that only root can read. If the host's C(systemd-creds) can encrypt, the file is for
    C(LoadCredentialEncrypted=), otherwise for C(LoadCredential=). Other credentials in the folder are removed.
  - No text appears in a result, a diff or an argument of a program.
options:
  folder:
    description: Folder of the files, used only by this module.
    type: path
    required: true
  texts:
    description: Name of each credential to its text; an empty mapping removes all.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Reports the same plan; a test in memory shows whether the host can encrypt.
  diff_mode:
    support: full
    description: Shows the names of the credentials, and whether each is correct.
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
  description: Executed steps, or planned steps in check mode.
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
