#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/config_files.py."""

from __future__ import annotations

# Longer than its limit, because it documents all options of four kinds of entries.
DOCUMENTATION = r"""
---
module: host_files
short_description: Keep a set of small configuration files
description:
  - Compares all desired files with the host, validates the new texts, and writes the differing files, in one task.
  - Writes are atomic and keep owner, access control list and security label of existing files. A bind-mounted file
    (C(/etc/hosts) in a container) is written in place.
options:
  files:
    description: Desired files.
    type: list
    elements: dict
    default: []
    suboptions:
      dest:
        description: Absolute path. Missing directories are created with mode 0755.
        type: path
        required: true
      template:
        description: Template of the text, searched for like in M(ansible.builtin.template).
        type: str
      content:
        description: The text itself, instead of a template.
        type: str
      secret_content:
        description: The text of an entry with I(secret), set by the action plugin.
        type: str
      loop:
        description: Elements, one file for each; the other values and the template see it as C(item).
        type: list
        elements: raw
      when:
        description: Condition of the entry. If it is false, the entry is ignored.
        type: raw
      owner:
        description: User name; by default that of an existing file is kept.
        type: str
        default: ""
      group:
        description: Group name; by default that of an existing file is kept.
        type: str
        default: ""
      mode:
        description: Permission bits, an octal string. The default is 0644; with I(block), those of an existing file.
        type: str
      block:
        description: Manage only the lines between two marker comments, and keep the rest of the file. An empty text
          removes the block.
        type: bool
        default: false
      validate:
        description: Program and arguments, with C(%s) for a file with the new text. If the program is not installed,
          validation is skipped and the result reports it.
        type: list
        elements: str
        default: []
      secret:
        description: Never show the text of this file, only that it differs.
        type: bool
        default: false
      also:
        description: Variables for equivalent texts. A file with such a text is not changed.
        type: list
        elements: raw
        default: []
      own:
        description: Only this project uses the path, so that a file without the marker is replaced.
        type: bool
        default: false
      ours:
        description: Line beginnings, in order, that identify this project's texts in formats without a marker.
        type: list
        elements: str
        default: []
      beside:
        description: Path next to which the owner's file is kept, if not next to this one.
        type: path
        default: ""
  replace:
    description: Files of the host's owner that may be replaced. The old file is kept next to the new one as
      C(NAME.before-trainyard). Any other file without the text C(Managed by trainyard) is refused, unless it is a
      package's unedited configuration file.
    type: list
    elements: path
    default: []
  trees:
    description: Main files with their imports. If a desired file among them changes, all are validated together with
      the existing files of others. The error contains the path of the faulty file.
    type: list
    elements: dict
    default: []
    suboptions:
      root:
        description: Path of the main file.
        type: path
        required: true
      parts:
        description: Glob pattern of the imported files, as written in the main file.
        type: str
        required: true
      argv:
        description: Program and arguments, with C(%s) for the main file.
        type: list
        elements: str
        required: true
  folders:
    description:
      - Desired folders, created before the files are written. Missing parents are created with mode 0755.
      - Links of other users are never followed, so that root can safely work below another user's folder.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      owner:
        description: User name or ID; by default that of an existing folder is kept.
        type: str
        default: ""
      group:
        description: Group name or ID; by default that of an existing folder is kept.
        type: str
        default: ""
      mode:
        description: Permission bits, an octal string.
        type: str
        default: "0755"
  stale:
    description: Glob patterns. A matching file that is not a desired file is removed if it contains the text C(Managed
      by trainyard), and kept otherwise.
    type: list
    elements: str
    default: []
  set_aside:
    description: Glob patterns. A matching file that is not a desired file is renamed to C(NAME.disabled), or
      C(NAME.2.disabled) and so on if that name is taken.
    type: list
    elements: str
    default: []
  apt_sources_once:
    description:
      - Keep only one entry on the host for each repository of a desired file in C(/etc/apt/sources.list.d), because two
        entries with different keys make all apt programs fail.
      - If the host's owner has an entry with the same repository and key, that entry is used instead of the desired
        file. Other entries of the repository are set aside. Their file is kept as C(NAME.disabled), and its other
        repositories are written back.
    type: bool
    default: false
  commands:
    description: Programs that read the files. Each runs if its input has changed since its last success, so that
      running the module again completes an interrupted run.
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
        description: The package runs the program at its installation, so it is skipped until then.
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
    description: Validates, reports the same plan, and writes nothing.
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
  description: Files and folders that differ from the desired ones.
  returned: always
  type: list
  elements: str
not_validated:
  description: Files whose new text was not validated, because the validator is not installed.
  returned: always
  type: list
  elements: str
steps:
  description: Executed steps, or planned steps in check mode.
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
from ansible.module_utils.trainyard.host.config_files import Command, File, Folder, HostFiles
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
"""An entry. The action plugin removes template, loop, when and secret when it renders the entry."""
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
