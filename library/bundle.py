#!/usr/bin/python
"""Build or fetch all artefacts of a site from one lock file."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: bundle
short_description: Build or fetch the artefacts of the lock file
description:
  - Fills a content-addressed store outside the checkout with the artefacts of the lock file - programs, Debian
    packages, container images, Python wheels, data sets and manifests, each at the locked version.
  - Existing, intact artefacts are not touched. A changed recipe rebuilds only its dependents. An artefact whose files
    no longer match their recorded hashes is made again.
  - Runs on the controller.
options:
  lock:
    description: Path of the lock file.
    type: path
    required: true
  project:
    description: Root of the repository, which the lock's C(project:) references are relative to.
    type: path
    required: true
  cache_dir:
    description: Folder of the store and of the tools' caches.
    type: path
    required: true
  debian_mirror:
    description: Base URL of a Debian archive; if empty, the one in this machine's apt sources.
    type: str
    default: ""
  go_min:
    description: Oldest Go version that builds the locked versions; the pinned one must not be older.
    type: str
    default: "1.26"
  source:
    description:
      - Origin of artefacts. V(source) builds all from their recipes. V(upstream) fetches the vendors' artefacts if the
        lock has an origin. V(auto) fetches them if the origin is pinned and reachable.
      - With V(auto), existing artefacts are kept.
    type: str
    choices: [auto, upstream, source]
    default: auto
  artefacts:
    description:
      - Names of the results to make. An empty list makes nothing.
      - The default is all artefacts that are not inputs of others, except those that only a vendor makes and disks of
        machines.
    type: list
    elements: str
  also:
    description: Names of additional results to make.
    type: list
    elements: str
    default: []
  keep_days:
    description:
      - Remove artefacts that no longer belong to an entry of the lock and that are older than this many days.
      - V(0) removes nothing.
    type: int
    default: 0
  delivered:
    description:
      - Folder of archives that another machine made with O(packed). Artefacts with a recipe are taken from there. Only
        code, and programs that run on the controller, are built here.
    type: path
  packed:
    description:
      - Folder into which each requested artefact is packed, as an archive that belongs to the folder's owner.
    type: path
  pin:
    description:
      - Instead of making artefacts, query the vendors for the hashes of origins marked C(unpinned), and write them into
        the lock.
      - Check mode also compares all other pins with the vendors' files; a difference is an error.
    type: bool
    default: false
  progress_file:
    description: File for progress lines; set by the action plugin.
    type: path
extends_documentation_fragment: [proxy]
attributes:
  check_mode:
    support: full
    description: Reports which artefacts would be made.
  diff_mode:
    support: full
    description: Lists the artefacts that are absent or not intact.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Build the bundle
  bundle:
    lock: "{{ playbook_dir }}/bundle.lock.yml"
    project: "{{ playbook_dir }}"
    cache_dir: /var/cache/trainyard
"""

RETURN = r"""
artefacts:
  description:
    - Available artefacts by name, each with its path, version, key, origin (C(source) or C(upstream)) and the facts of
      its kind.
  returned: always
  type: dict
missing:
  description: Names of artefacts that were absent or not intact before.
  returned: always
  type: list
  elements: str
recipes:
  description: Names in C(missing) that are built from a recipe instead of fetched.
  returned: always
  type: list
  elements: str
inputs:
  description: Files and folders of the project that the lock's recipes refer to.
  returned: with O(delivered)
  type: list
  elements: str
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle import assemble, build_machine, delivery, lockfile, pin
from ansible.module_utils.trainyard.bundle.artefact_store import Store
from ansible.module_utils.trainyard.bundle.assemble import Assembly
from ansible.module_utils.trainyard.bundle.context import Context
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.progress import Progress
from ansible.module_utils.trainyard.core.proxy import PROXY, use
from ansible.module_utils.trainyard.core.runner import fail, run_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "lock": {"type": "path", "required": True},
            "project": {"type": "path", "required": True},
            "cache_dir": {"type": "path", "required": True},
            "debian_mirror": {"type": "str", "default": ""},
            "go_min": {"type": "str", "default": "1.26"},
            "source": {"type": "str", "choices": ["auto", "upstream", "source"], "default": "auto"},
            "artefacts": {"type": "list", "elements": "str"},
            "also": {"type": "list", "elements": "str", "default": []},
            "keep_days": {"type": "int", "default": 0},
            "delivered": {"type": "path"},
            "packed": {"type": "path"},
            "pin": {"type": "bool", "default": False},
            "progress_file": {"type": "path"},
            **PROXY,
        },
        supports_check_mode=True,
    )
    use(module.params["proxy"])
    try:
        (_pin if module.params["pin"] else _make)(module)
    except TrainyardError as error:
        fail(module, error)


def _make(module: AnsibleModule) -> None:
    params = module.params
    artefacts = lockfile.load(params["lock"])
    cache = Path(params["cache_dir"])
    store = Store(cache, remembers=not module.check_mode)
    context = Context(Path(params["project"]).resolve(), cache, params["debian_mirror"])
    delivered = Path(params["delivered"]) if params["delivered"] else None
    assembly = Assembly(artefacts, params["artefacts"], store, context, params["source"], params["also"], delivered)
    missing, recipes = list(assembly.missing), assembly.recipes
    kinds = assembly.kinds_made_here
    if missing:
        build_machine.check_disk(cache, delivered is not None)
    if kinds & {"debian_packages", "rootfs"}:
        context.debian_mirror = context.debian_mirror or build_machine.debian_mirror()

    def find_go() -> None:
        if kinds & {"go_programs", "go_module_files"}:
            context.go = build_machine.go_folder(params["go_min"], cache, context.project / build_machine.GO_TOOLCHAIN)

    def build() -> None:
        assembly.build_missing(Progress(params["progress_file"]), find_go)
        for name in missing:
            if drift := assembly.manifests[name].get("drift"):
                module.warn(f"{name}: Debian has newer packages than in the previous build: {', '.join(drift)}.")

    def make_plan() -> Plan:
        steps = []
        if missing:
            steps.append(Step(f"Make {len(missing)} artefacts: {', '.join(missing)}", build))
        if params["packed"]:

            def pack() -> None:
                for name in assembly.wanted:
                    delivery.pack(store, name, assembly.keys[name], Path(params["packed"]))

            steps.append(Step(f"Pack {', '.join(assembly.wanted)}", pack))
        if params["keep_days"] > 0:
            keep = assemble.current(artefacts, context.project, store, assembly.choices)
            if paths := assemble.stale(store, keep, params["keep_days"]):
                what = f"Remove {len(paths)} old artefacts: {', '.join(path.name for path in paths)}"

                def remove() -> None:
                    with store.locked(lambda: None):
                        assemble.remove(paths, store, context)

                steps.append(Step(what, remove))
        before = {name: assembly.keys[name][:16] for name in assembly.manifests}
        return Plan(steps, before, {**before, **{name: assembly.keys[name][:16] for name in missing}})

    def make_result() -> dict[str, Any]:
        inputs = {"inputs": _inputs(artefacts)} if delivered else {}
        return {"artefacts": assembly.result(), "missing": missing, "recipes": recipes, **inputs}

    run_plan(module, make_plan, make_result)


def _inputs(artefacts: dict[str, lockfile.Artefact]) -> list[str]:
    references = [reference for artefact in artefacts.values() for reference in artefact.references()]
    return sorted(
        {build_machine.GO_TOOLCHAIN} | {reference.path for reference in references if reference.kind == "project"}
    )


def _pin(module: AnsibleModule) -> None:
    path, project = Path(module.params["lock"]), Path(module.params["project"])

    def make_plan() -> Plan:
        pins = (pin.compare if module.check_mode else pin.resolve)(lockfile.load(path), project)
        what = f"Write {len(pins)} hashes into {path}"
        after = {entry.origin: entry.value for entry in pins}
        steps = [Step(what, lambda: pin.write(path, pins))] if pins else []
        return Plan(steps, dict.fromkeys(after, "unpinned"), after)

    run_plan(module, make_plan, lambda: {"artefacts": {}, "missing": [], "recipes": []})


if __name__ == "__main__":
    main()
