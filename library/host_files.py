#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/config_files.py."""

from __future__ import annotations

# Longer than its limit: four kinds of entries, of which each option is documented.
DOCUMENTATION = r"""
---
module: host_files
short_description: Keep a set of small configuration files
description:
  - Compares all wanted files with the host, validates the new texts, and writes what differs, in one task.
  - Every write is atomic and keeps owner, access control list and security label of the file that is there; a file
    that is bind-mounted (C(/etc/hosts) in a container) is written in place.
options:
  files:
    description: Wanted files.
    type: list
    elements: dict
    default: []
    suboptions:
      dest:
        description: Absolute path. Missing directories are made with mode 0755.
        type: path
        required: true
      template:
        description: Template from which the text is rendered, as M(ansible.builtin.template) finds it.
        type: str
      content:
        description: The text itself, in place of a template.
        type: str
      secret_content:
        description: The text of an entry with I(secret), set by the action plugin.
        type: str
      loop:
        description: One file for each element, which the other values and the template know as C(item).
        type: list
        elements: raw
      when:
        description: Condition of the entry; without it the file is not wanted, as if it were not named.
        type: raw
      owner:
        description: Name of the user; left out, an existing file's stays.
        type: str
        default: ""
      group:
        description: Name of the group; left out, an existing file's stays.
        type: str
        default: ""
      mode:
        description: Permission bits, an octal string; 0644 when left out, with I(block) those of an existing file.
        type: str
      block:
        description: Manage only the lines between two marker comments, and leave the rest of the file alone. An empty
          text removes the block.
        type: bool
        default: false
      validate:
        description: Program and arguments with C(%s) for a file of the new text. Left out, with a mention in the
          result, where the program is not installed.
        type: list
        elements: str
        default: []
      secret:
        description: Never show the text of this file; that it differs is shown.
        type: bool
        default: false
      also:
        description: Variables for other texts with the same meaning. A file that holds such a text keeps it.
        type: list
        elements: raw
        default: []
      own:
        description: The place is this project's alone. A file without the mark is replaced there.
        type: bool
        default: false
      ours:
        description: Beginnings of lines that each text of this project has in this order, where no mark is possible.
        type: list
        elements: str
        default: []
      beside:
        description: Path beside which the owner's file is kept, if not beside this one.
        type: path
        default: ""
  replace:
    description: Files of the host's owner that may be replaced. The old file stays beside the new one, as
      C(NAME.before-trainyard). Any other file without the text C(Managed by trainyard) is refused, unless it is a
      package's own configuration file, unedited.
    type: list
    elements: path
    default: []
  trees:
    description: Main files with what they import. Where a wanted file of them changes, the whole is validated, with
      the present files of others. The error names the file at fault.
    type: list
    elements: dict
    default: []
    suboptions:
      root:
        description: Path of the main file.
        type: path
        required: true
      parts:
        description: Glob pattern of the imported files, as the main file has it.
        type: str
        required: true
      argv:
        description: Program and arguments with C(%s) for a main file.
        type: list
        elements: str
        required: true
  folders:
    description:
      - Wanted folders, made before the files are written. Missing ones above are made with mode 0755.
      - No link of another user is followed on the way to a folder or a file, so that root can work below a folder of
        that user.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      owner:
        description: Name or number of the user; left out, an existing folder's stays.
        type: str
        default: ""
      group:
        description: Name or number of the group; left out, an existing folder's stays.
        type: str
        default: ""
      mode:
        description: Permission bits, an octal string.
        type: str
        default: "0755"
  stale:
    description: Glob patterns. A matching file that is not wanted is removed if it holds the text C(Managed by
      trainyard), and left alone otherwise.
    type: list
    elements: str
    default: []
  set_aside:
    description: Glob patterns. A matching file that is not wanted is renamed to C(NAME.disabled), or
      C(NAME.2.disabled) and so on where that is taken.
    type: list
    elements: str
    default: []
  apt_sources_once:
    description:
      - Have each repository of a wanted file in C(/etc/apt/sources.list.d) once on the host, since two entries with
        other keys stop every apt program.
      - An entry of the host's owner that has the same repository and key takes the place of the wanted file, which is
        then not wanted. Any other entry of it is set aside. Its file is kept as C(NAME.disabled), and what it has of
        other repositories is written back.
    type: bool
    default: false
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
      by_package:
        description: The program's package runs it when it is installed; before that there is nothing to do.
        type: bool
        default: false
  state_dir:
    description: Directory of the commands' records.
    type: path
    default: /var/lib/trainyard/host_files
  timeout:
    description: Seconds for one validator or command.
    type: int
    default: 120
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
      - dest: /etc/registry/config.yml
        template: config.yml.j2
        validate: [registry, --check, "%s"]
      - dest: "/etc/containerd/certs.d/{{ item.key }}/hosts.toml"
        template: hosts.toml.j2
        loop: "{{ registry_mirrors | dict2items }}"
      - dest: /etc/registry/server.key
        content: "{{ registry_key }}"
        group: registry
        mode: "0640"
        secret: true
    stale:
      - "/etc/containerd/certs.d/*/hosts.toml"
"""

RETURN = r"""
changed_paths:
  description: Files and folders that differ from the wanted ones.
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

from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail, run_plan
from ansible.module_utils.trainyard.host.apt_sources import plan_once
from ansible.module_utils.trainyard.host.config_files import Command, File, HostFiles
from ansible.module_utils.trainyard.host.folders import Folder
from ansible.module_utils.trainyard.host.validation import Tree

FILE = {
    "dest": {"type": "path", "required": True},
    "template": {"type": "str"},
    "content": {"type": "str"},
    "secret_content": {"type": "str", "no_log": True},
    "loop": {"type": "list", "elements": "raw"},
    "when": {"type": "raw"},
    "owner": {"type": "str", "default": ""},
    "group": {"type": "str", "default": ""},
    "mode": {"type": "str"},
    "block": {"type": "bool", "default": False},
    "validate": {"type": "list", "elements": "str", "default": []},
    "secret": {"type": "bool", "default": False, "no_log": False},
    "also": {"type": "list", "elements": "raw", "default": []},
    "own": {"type": "bool", "default": False},
    "ours": {"type": "list", "elements": "str", "default": []},
    "beside": {"type": "path", "default": ""},
}
"""An entry; template, loop, when and secret are gone when the action plugin has rendered it."""
FOLDER = {
    "path": {"type": "path", "required": True},
    "owner": {"type": "str", "default": ""},
    "group": {"type": "str", "default": ""},
    "mode": {"type": "str", "default": "0755"},
}


def _file(given: dict[str, Any]) -> File:
    mode = given["mode"] or (None if given["block"] else "0644")
    secret = given["secret_content"] is not None
    return File(
        path=given["dest"],
        content=(given["secret_content"] if secret else given["content"]) or "",
        mode=int(mode, 8) if mode else None,
        secret=secret,
        **{key: given[key] for key in ("block", "validate", "owner", "group", "also", "own", "ours", "beside")},
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "default": [], "options": FILE},
            "folders": {"type": "list", "elements": "dict", "default": [], "options": FOLDER},
            "stale": {"type": "list", "elements": "str", "default": []},
            "set_aside": {"type": "list", "elements": "str", "default": []},
            "replace": {"type": "list", "elements": "path", "default": []},
            "trees": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "root": {"type": "path", "required": True},
                    "parts": {"type": "str", "required": True},
                    "argv": {"type": "list", "elements": "str", "required": True},
                },
            },
            "apt_sources_once": {"type": "bool", "default": False},
            "commands": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "argv": {"type": "list", "elements": "str", "required": True},
                    "paths": {"type": "list", "elements": "str", "required": True},
                    "by_package": {"type": "bool", "default": False},
                },
            },
            "state_dir": {"type": "path", "default": "/var/lib/trainyard/host_files"},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        wanted = HostFiles(
            files=[_file(given) for given in module.params["files"]],
            folders=[Folder(**{**given, "mode": int(given["mode"], 8)}) for given in module.params["folders"]],
            stale=module.params["stale"],
            set_aside=module.params["set_aside"],
            commands=[Command(**given) for given in module.params["commands"]],
            trees=[Tree(**given) for given in module.params["trees"]],
            replace=module.params["replace"],
            state_dir=module.params["state_dir"],
            timeout=module.params["timeout"],
        )
    except TrainyardError as error:
        fail(module, error)
    run_plan(
        module,
        partial(plan_once, wanted) if module.params["apt_sources_once"] else wanted.plan,
        lambda: {"changed_paths": wanted.changed_paths, "not_validated": wanted.not_validated},
    )


if __name__ == "__main__":
    main()
