#!/usr/bin/python
"""Thin module; the logic is in module_utils/trainyard/host/config_files.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_files
short_description: Keep a set of small configuration files
description:
  - Compares all wanted files with the host, validates the new texts, and writes what differs, in one task.
  - Every write is atomic; a file that is bind-mounted (C(/etc/hosts) in a container) is written in place.
options:
  files:
    description: Wanted files.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path. Missing directories are made with mode 0755.
        type: path
        required: true
      content:
        description: Whole text of the file, or of the block.
        type: str
        required: true
      mode:
        description: Permission bits, an octal string. Left out with I(block), an existing file's mode stays.
        type: str
      block:
        description: Manage only the lines between two marker comments, and leave the rest of the file alone. Empty
          content removes the block.
        type: bool
        default: false
      validate:
        description: Program and arguments with C(%s) for a file of the new text. Left out, with a mention in the
          result, where the program is not installed.
        type: list
        elements: str
        default: []
  stale:
    description: Glob patterns. A matching file that is not wanted is removed if it holds the text C(Managed by
      trainyard), and left alone otherwise.
    type: list
    elements: str
    default: []
  set_aside:
    description: Glob patterns. A matching file that is not wanted is renamed to C(NAME.disabled).
    type: list
    elements: str
    default: []
  commands:
    description: Programs that read the files. Each runs when its input is not what it last succeeded with, so an
      interrupted run is made good by the next.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the record of the last run.
        type: str
        required: true
      argv:
        description: Program and arguments.
        type: list
        elements: str
        required: true
      paths:
        description: Glob patterns of the files that the program reads.
        type: list
        elements: str
        required: true
  state_dir:
    description: Directory of the commands' records.
    type: path
    default: /var/lib/trainyard/host_files
attributes:
  check_mode:
    description: Validates and reports the same plan, and writes nothing.
    support: full
  diff_mode:
    description: Shows the texts before and after.
    support: full
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Write the registry settings
  host_files:
    files:
      - path: "/etc/containerd/certs.d/docker.io/hosts.toml"
        content: "# Managed by trainyard\nserver = \"https://registry.example.com\"\n"
    stale:
      - "/etc/containerd/certs.d/*/hosts.toml"
"""

RETURN = r"""
changed_paths:
  description: Files that differ from the wanted ones.
  returned: always
  type: list
  elements: str
not_validated:
  description: Files whose new text was not validated, because the validator is not installed.
  returned: always
  type: list
  elements: str
steps:
  description: What was done, or in check mode would be done.
  returned: always
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host.config_files import Command, File, HostFiles


def _file(given: dict[str, Any]) -> File:
    mode = given["mode"] or (None if given["block"] else "0644")
    return File(
        path=given["path"],
        content=given["content"],
        mode=int(mode, 8) if mode else None,
        block=given["block"],
        validate=given["validate"],
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str", "required": True},
                    "mode": {"type": "str"},
                    "block": {"type": "bool", "default": False},
                    "validate": {"type": "list", "elements": "str", "default": []},
                },
            },
            "stale": {"type": "list", "elements": "str", "default": []},
            "set_aside": {"type": "list", "elements": "str", "default": []},
            "commands": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "argv": {"type": "list", "elements": "str", "required": True},
                    "paths": {"type": "list", "elements": "str", "required": True},
                },
            },
            "state_dir": {"type": "path", "default": "/var/lib/trainyard/host_files"},
        },
        supports_check_mode=True,
    )
    wanted = HostFiles(
        files=[_file(given) for given in module.params["files"]],
        stale=module.params["stale"],
        set_aside=module.params["set_aside"],
        commands=[Command(**given) for given in module.params["commands"]],
        state_dir=module.params["state_dir"],
    )
    run_plan(
        module,
        wanted.plan,
        lambda: {"changed_paths": wanted.changed_paths, "not_validated": wanted.not_validated},
    )


if __name__ == "__main__":
    main()
