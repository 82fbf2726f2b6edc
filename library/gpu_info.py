#!/usr/bin/python
"""Say which NVIDIA GPUs a host has, and how they are."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_info
short_description: NVIDIA GPUs of a host, their driver and their health
description:
  - Asks NVIDIA's management library through NVIDIA's own Python binding, which comes with the controller's environment
    and is sent along by the action plugin of the same name, so that nothing has to be installed on a host.
  - Where there is no library, or it cannot be used, it reads C(nvidia-smi -q -x); the fields are the same.
  - A host without GPU or driver is no error; O(ignore:source) is then V(none).
options:
  textfile:
    description:
      - File in the folder of the node exporter's textfile collector, whose name ends with C(.prom).
      - It is a reading of the moment, with names and labels of NVIDIA's DCGM exporter, and written at every run.
      - Only other series count as a change; other values do not.
    type: path
  binding:
    description: File of the binding on the host; the action plugin sets it.
    type: path
attributes:
  check_mode:
    support: full
    description: Looks all the same, and writes nothing.
  diff_mode:
    support: full
    description: Shows the series of O(textfile).
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look at the GPUs
  gpu_info:
  register: gpus

- name: Look at the GPUs, and have the node exporter tell of them
  gpu_info:
    textfile: /var/lib/prometheus/node-exporter/gpus.prom
"""

RETURN = r"""
ansible_facts:
  description: The facts, so that later tasks have them by C(ansible_facts['gpus']).
  returned: always
  type: dict
  contains:
    gpus:
      description: Driver and GPUs.
      type: dict
      contains:
        source:
          description: Who answered, V(nvml), V(nvidia-smi), or V(none).
          type: str
        error:
          description: Why nobody did.
          type: str
        on_bus:
          description: Number of GPUs that PCI shows, whether the driver knows them or not; null where it shows none.
          type: int
        driver:
          description: Version of the driver.
          type: str
        cuda:
          description: Newest CUDA that the driver knows.
          type: str
        module_version:
          description: Version of the kernel module that is loaded.
          type: str
        library_version:
          description: Version of the library that programs find.
          type: str
        next_module_version:
          description: Version of the kernel module that the next boot loads.
          type: str
        package_version:
          description: Version of the package that has the library.
          type: str
        pending:
          description: Which of these versions differ though the GPUs work still, as text; nothing where none does.
          type: str
        skew:
          description: Whether loaded module and library differ, or the library says so; new programs then find no GPU.
          type: bool
        healthy:
          description: Whether there are GPUs, none of them with problems, and no skew.
          type: bool
        gpus:
          description: One element for each GPU, by its index; what is not known is null.
          type: list
          elements: dict
"""

import socket
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core import files
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.gpu import metrics
from ansible.module_utils.trainyard.gpu.look import look


def main() -> None:
    module = AnsibleModule(
        argument_spec={"textfile": {"type": "path"}, "binding": {"type": "path"}}, supports_check_mode=True
    )
    facts: dict[str, object] = {}

    def make_plan() -> Plan:
        binding = module.params["binding"]
        inventory = look(Path(binding) if binding else None)
        facts.update(inventory.facts())
        if not module.params["textfile"]:
            return Plan()
        return _plan_textfile(
            Path(module.params["textfile"]), metrics.render(inventory, socket.gethostname()), check=module.check_mode
        )

    run_plan(module, make_plan, lambda: {"ansible_facts": {"gpus": facts}})


def _plan_textfile(path: Path, text: str, *, check: bool) -> Plan:
    """A step where other things are measured than before; other values are written without one."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    old, new = metrics.series(before), metrics.series(text)
    steps = []
    if old != new or not path.is_file():
        steps.append(Step(f"Write {path}", lambda: files.write(str(path), text, 0o644)))
    elif not check:
        files.write(str(path), text, 0o644)
    return Plan(steps, {"series": old}, {"series": new})


if __name__ == "__main__":
    main()
