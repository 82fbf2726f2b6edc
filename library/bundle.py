#!/usr/bin/python
"""Build everything that a site needs from one lock file."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle
short_description: Build or fetch every artefact of the lock file
description:
  - Brings a content-addressed store outside the checkout to the state that the lock file describes - programs, Debian
    packages, container images, Python wheels, data sets and manifests, each at the locked version.
  - What is there and intact is left alone; a changed recipe makes again only what depends on it; a file whose hash is
    no longer the recorded one is made again.
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
    description: Base URL of a Debian archive; the one of this machine's own apt sources when empty.
    type: str
    default: ""
  go_min:
    description: Oldest Go that builds the locked versions.
    type: str
    default: "1.26"
  artefacts:
    description: Names of the results to make; all that nothing else in the lock is made from when empty.
    type: list
    elements: str
    default: []
  progress_file:
    description: File for progress lines; set by the action plugin.
    type: path
attributes:
  check_mode:
    support: full
    description: Says which artefacts would be made.
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
  description: Every artefact that is there, by name, with its path, version, key and the facts of its kind.
  returned: always
  type: dict
missing:
  description: Names that were absent or not intact before.
  returned: always
  type: list
  elements: str
steps:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.bundle import lock, machine
from ansible.module_utils.trainyard.bundle.assemble import Assembly
from ansible.module_utils.trainyard.bundle.context import Context
from ansible.module_utils.trainyard.bundle.store import Store
from ansible.module_utils.trainyard.errors import TrainyardError
from ansible.module_utils.trainyard.plan import Plan, Step
from ansible.module_utils.trainyard.progress import Progress
from ansible.module_utils.trainyard.runner import fail, run_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "lock": {"type": "path", "required": True},
            "project": {"type": "path", "required": True},
            "cache_dir": {"type": "path", "required": True},
            "debian_mirror": {"type": "str", "default": ""},
            "go_min": {"type": "str", "default": "1.26"},
            "artefacts": {"type": "list", "elements": "str", "default": []},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        artefacts = lock.load(params["lock"])
        cache = Path(params["cache_dir"])
        context = Context(Path(params["project"]).resolve(), cache, params["debian_mirror"])
        assembly = Assembly(artefacts, params["artefacts"], Store(cache), context, source="source")
        missing = list(assembly.missing)
        if missing:
            machine.check_disk(cache)
            machine.check_go(params["go_min"])
            context.debian_mirror = context.debian_mirror or machine.debian_mirror()
    except TrainyardError as error:
        fail(module, error)
        return

    def make_plan() -> Plan:
        steps = []
        if missing:
            what = f"Make {len(missing)} artefacts: {', '.join(missing)}"
            steps.append(Step(what, lambda: assembly.build_missing(Progress(params["progress_file"]))))
        before = {name: assembly.keys[name][:16] for name in assembly.manifests}
        return Plan(steps, before, {**before, **{name: assembly.keys[name][:16] for name in missing}})

    run_plan(module, make_plan, lambda: {"artefacts": assembly.result(), "missing": missing})


if __name__ == "__main__":
    main()
