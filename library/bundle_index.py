#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/bundle/index.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: bundle_index
short_description: Read facts about the artefacts from the index of a mirror
description:
  - For a controller that makes no artefacts, such as that of a schedule. Returns the same facts as M(bundle) on the
    controller that makes them, and writes the manifests into O(cache_dir).
  - If the recipe of an artefact differs from this checkout's, it is refused, because hosts would be compared with other
    versions.
options:
  index:
    description: The https URL, or path, of the index.
    type: str
    required: true
  ca_file:
    description: CA of the mirror's certificate; the default is the system's CAs.
    type: path
  lock:
    description: Path of the lock file.
    type: path
    required: true
  project:
    description: Root of the repository.
    type: path
    required: true
  cache_dir:
    description: Folder for the manifests.
    type: path
    required: true
  artefacts:
    description: Names of the requested results; the default is the same as for M(bundle).
    type: list
    elements: str
  also:
    description: Names of additional results.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Runs as usual and writes the manifests, because they are only a cache.
  diff_mode:
    support: none
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Read the index of the mirror
  bundle_index:
    index: https://mirror.example.com/index/artefacts.json
    lock: "{{ playbook_dir }}/bundle.lock.yml"
    project: "{{ playbook_dir }}"
    cache_dir: /var/cache/trainyard
"""

RETURN = r"""
artefacts:
  description: Requested artefacts by name, each with its version, key and the facts of its kind; manifests also have
    their path.
  returned: always
  type: dict
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle import index, lockfile
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "index": {"type": "str", "required": True},
            "ca_file": {"type": "path"},
            "lock": {"type": "path", "required": True},
            "project": {"type": "path", "required": True},
            "cache_dir": {"type": "path", "required": True},
            "artefacts": {"type": "list", "elements": "str"},
            "also": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        lock_file, ca_file = Path(params["lock"]), params["ca_file"] or ""
        wanted = lockfile.results(lockfile.load(lock_file)) if params["artefacts"] is None else params["artefacts"]
        keys = index.recipes(lock_file, Path(params["project"]), dict.fromkeys([*wanted, *params["also"]]))
        chosen = index.choose(index.read(params["index"], ca_file), keys, params["index"])
        artefacts = {name: _placed(entry, name, Path(params["cache_dir"])) for name, entry in chosen.items()}
    except TrainyardError as error:
        fail(module, error)
    module.exit_json(changed=False, artefacts=artefacts)


def _placed(entry: dict[str, Any], name: str, cache: Path) -> dict[str, Any]:
    """Write an entry's texts to files, and return the entry in the form of the module `bundle`."""
    folder = cache / "index" / f"{name}-{entry['recipe'][:16]}"
    for file, text in entry["texts"].items():
        if Path(file).name != file:
            raise TrainyardError(f"The index contains the invalid file name {file}.")
        _keep(folder / file, text)
    facts = {key: value for key, value in entry.items() if key not in ("recipe", "texts")}
    layout = {"layout": str(folder / "oci")} if entry.get("kind") == "image" else {}
    return {**facts, **layout, "path": str(folder), "origin": "index"}


def _keep(path: Path, text: str) -> None:
    """Write a file atomically, unless it already has this text."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(name, path)


if __name__ == "__main__":
    main()
