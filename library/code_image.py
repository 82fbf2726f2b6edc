#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/oci."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: code_image
short_description: Pack a folder of code into an OCI image
description:
  - Packs a folder into an OCI layout of one layer, which M(oci_push) pushes, M(containerd_images) imports on nodes, and
    pods mount as an image volume. Nothing is built, so neither a Dockerfile nor a builder is needed.
  - The same files always give the same digest - files are sorted, owned by root, dated 1970, with mode 0644 or 0755.
  - Excludes C(.git), C(__pycache__), C(.ipynb_checkpoints), empty folders, and files that match C(.trainignore) in the
    folder. It has one pattern per line - a name (C(*.log)), a folder's name (C(data/)), or a path from the folder
    (C(/notes/*.txt)); C(#) starts a comment. Other C(.gitignore) syntax is refused.
  - Refuses files with secrets, by name (C(.env), C(*.pem), C(id_rsa), C(.aws), a virtual environment) or by content
    (private keys; keys of AWS, Google Cloud, GitHub and Hugging Face). A line such as C(!test.pem) allows a file that
    is not a secret.
  - Refuses more than 64 MiB, links that are absolute or lead out of the folder, devices, pipes, sockets, unreadable
    files, and folders without files.
  - Runs on the controller.
options:
  folder:
    description: Folder of the code.
    type: path
    required: true
  command:
    description:
      - Command that pods run in the folder, as a list, or as a string that is split like in a shell.
      - Its file must be in the image - the script of an interpreter (C(python worker.py)), a program with a relative
        path (C(./run.sh)), a module in the folder (C(python -m mine.train)). Other programs are not checked.
    type: raw
    default: []
  store:
    description: Folder with one layout per digest. It is created.
    type: path
    required: true
  keep:
    description: Number of newest layouts to keep in O(store). Layouts used within the last day are also kept.
    type: int
    default: 5
attributes:
  check_mode:
    support: full
    description: Packs in memory to compute the digest, and writes nothing.
  diff_mode:
    support: full
    description: Shows digest and number of files of the newest layout in O(store) and of the folder.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Pack the code of a training
  code_image:
    folder: ./mine
    command: python worker.py
    store: "{{ site_dir }}/code/wide"
  register: code

- name: Import it on the node
  containerd_images:
    images:
      - reference: localhost/trainyard/code/wide@{{ code.digest }}
        layout: "{{ code.layout }}"
"""

RETURN = r"""
digest:
  description: Digest of the image's manifest.
  returned: always
  type: str
  sample: sha256:0123
tag:
  description: Prefix of the digest, for a tag that is unique to this code.
  returned: always
  type: str
  sample: 0123456789abcdef
layout:
  description: Folder of the OCI layout; in check mode, its future path.
  returned: always
  type: str
files:
  description: Number of files in the image.
  returned: always
  type: int
size:
  description: Total size of these files in bytes.
  returned: always
  type: int
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

import shlex
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.oci import code_command, code_folder, layout


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "command": {"type": "raw", "default": []},
            "store": {"type": "path", "required": True},
            "keep": {"type": "int", "default": 5},
        },
        supports_check_mode=True,
    )
    store = Path(module.params["store"])
    result: dict[str, Any] = {}

    def make_plan() -> Plan:
        code = Path(module.params["folder"])
        entries = code_folder.read(code)
        code_command.check(_words(module.params["command"]), code, entries)
        image = layout.pack(code, entries)
        files = [entry for entry in entries if entry.is_file]
        result.update(
            digest=image.digest,
            tag=image.digest.partition(":")[2][:16],
            layout=str(layout.path_of(store, image)),
            files=len(files),
            size=sum(entry.size for entry in files),
        )
        return layout.make_plan(store, image, len(files), max(module.params["keep"], 1))

    run_plan(module, make_plan, lambda: result)


def _words(given: Any) -> list[str]:
    """Return the command as a list of words.

    :raises TrainyardError: it is neither a list nor a string, or has an unclosed quote.
    """
    try:
        if isinstance(given, str):
            return shlex.split(given)
        if isinstance(given, list):
            return [str(word) for word in given]
        raise ValueError("it is neither a list nor a string")
    except ValueError as error:
        raise TrainyardError(f"The command {given!r} cannot be read: {error}.") from error


if __name__ == "__main__":
    main()
