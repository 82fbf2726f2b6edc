#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/oci."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: code_image
short_description: Pack a folder of code into an OCI image
description:
  - Packs a folder into an OCI layout of one layer, which M(oci_push) pushes, M(containerd_images) lays into nodes, and
    pods mount as an image volume. Nothing is built, so neither a Dockerfile nor a builder is needed.
  - The same files give the same digest, whenever and wherever they are packed - sorted, owned by root, from 1970, with
    the modes 0644 or 0755.
  - Left out are C(.git), C(__pycache__), C(.ipynb_checkpoints), empty folders, and what a file C(.trainignore) in the
    folder names. One pattern a line - a name (C(*.log)), a folder's name (C(data/)), or a path from the folder
    (C(/notes/*.txt)); C(#) begins a comment. The rest of C(.gitignore)'s language is refused.
  - Refused is what holds secrets, by its name (C(.env), C(*.pem), C(id_rsa), C(.aws), a virtual environment) or by its
    content (a private key, keys of AWS, Google Cloud, GitHub and Hugging Face). A line such as C(!test.pem) packs what
    is no secret.
  - Refused are more than 64 MiB, a link that is absolute or leads out of the folder, a device, pipe or socket, a file
    that cannot be read, and a folder without files.
  - Runs on the controller.
options:
  folder:
    description: Folder of the code.
    type: path
    required: true
  command:
    description:
      - What pods are to run in the folder, as a list, or as a string that is split as a shell does.
      - Its file must be in the image - the script of an interpreter (C(python worker.py)), a program with a relative
        path (C(./run.sh)), a module of one of the folder's packages (C(python -m mine.train)). Other programs are not
        looked at.
    type: raw
    default: []
  store:
    description: Folder in which a layout is kept for each digest; it is made.
    type: path
    required: true
  keep:
    description: How many layouts stay in O(store), the newest; those that were taken within a day stay, too.
    type: int
    default: 5
attributes:
  check_mode:
    support: full
    description: Packs in memory, so that the digest is known, and writes nothing.
  diff_mode:
    support: full
    description: Shows the digest and the number of files, of what O(store) has got last and of the folder.
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

- name: Lay it into the node
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
  description: Beginning of the digest, for a tag that no other code gets.
  returned: always
  type: str
  sample: 0123456789abcdef
layout:
  description: Folder of the OCI layout; in check mode where it would be.
  returned: always
  type: str
files:
  description: Number of files in the image.
  returned: always
  type: int
size:
  description: Bytes of these files together.
  returned: always
  type: int
steps:
  description: What was done, or would be in check mode.
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
from ansible.module_utils.trainyard.oci import command, folder, layout, shelf


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
        entries = folder.read(code)
        command.check(_words(module.params["command"]), code, entries)
        image = layout.pack(code, entries)
        files = [entry for entry in entries if entry.is_file]
        result.update(
            digest=image.digest,
            tag=image.digest.partition(":")[2][:16],
            layout=str(shelf.path_of(store, image)),
            files=len(files),
            size=sum(entry.size for entry in files),
        )
        return shelf.make_plan(store, image, len(files), max(module.params["keep"], 1))

    run_plan(module, make_plan, lambda: result)


def _words(given: Any) -> list[str]:
    """The command as a list of words.

    :raises TrainyardError: it is neither a list nor a string, or has a quote that does not end.
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
