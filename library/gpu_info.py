#!/usr/bin/python
"""Read the NVIDIA GPUs of a host, their driver and their health."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_info
short_description: Read the NVIDIA GPUs of a host, their driver and their health
description:
  - Queries NVIDIA's management library (NVML) through NVIDIA's own Python binding. The action plugin of the same name
    copies the binding from the controller's environment, so that nothing needs to be installed on a host.
  - If the library is missing or unusable, it reads C(nvidia-smi -q -x), with the same fields.
  - A host without GPU or driver is not an error; O(ignore:source) is then V(none).
options:
  textfile:
    description:
      - File in the folder of the node exporter's textfile collector, with the suffix C(.prom).
      - It contains the current values, with the names and labels of NVIDIA's DCGM exporter, and is written in each run.
      - Only different series count as a change; different values do not.
    type: path
  binding:
    description: File of the binding on the host; set by the action plugin.
    type: path
attributes:
  check_mode:
    support: full
    description: Reads as usual, and writes nothing.
  diff_mode:
    support: full
    description: Shows the series of O(textfile).
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Read the GPUs
  gpu_info:
  register: gpus

- name: Read the GPUs, and export them through the node exporter
  gpu_info:
    textfile: /var/lib/prometheus/node-exporter/gpus.prom
"""

RETURN = r"""
ansible_facts:
  description: Facts, available to later tasks as C(ansible_facts['gpus']).
  returned: always
  type: dict
  contains:
    gpus:
      description: Driver and GPUs.
      type: dict
      contains:
        source:
          description: Source of the facts, V(nvml), V(nvidia-smi), or V(none).
          type: str
        error:
          description: Reason if no source answered.
          type: str
        on_bus:
          description: Number of GPUs on the PCI bus, including those unknown to the driver; null if there are none.
          type: int
        driver:
          description: Version of the driver.
          type: str
        cuda:
          description: Newest CUDA version that the driver supports.
          type: str
        module_version:
          description: Version of the loaded kernel module.
          type: str
        library_version:
          description: Version of the installed library.
          type: str
        next_module_version:
          description: Version of the kernel module that the next boot loads.
          type: str
        package_version:
          description: Version of the package that owns the library.
          type: str
        pending:
          description: Differing versions that will stop the GPUs later, as text; empty if there are none.
          type: str
        skew:
          description: Whether loaded module and library differ, or the library reports so; new programs then find no
            GPU.
          type: bool
        healthy:
          description: Whether there are GPUs, none of them with problems, and no skew.
          type: bool
        gpus:
          description: One element per GPU, in order of the index; unknown values are null.
          type: list
          elements: dict
"""

import socket
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core import files
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.gpu import gpu_metrics
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
            Path(module.params["textfile"]),
            gpu_metrics.render(inventory, socket.gethostname()),
            check=module.check_mode,
        )

    run_plan(module, make_plan, lambda: {"ansible_facts": {"gpus": facts}})


def _plan_textfile(path: Path, text: str, *, check: bool) -> Plan:
    """Plan a step if the series differ; mere value changes are written without a step."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    old, new = gpu_metrics.series(before), gpu_metrics.series(text)
    steps = []
    if old != new or not path.is_file():
        steps.append(Step(f"Write {path}", lambda: files.write(str(path), text, 0o644)))
    elif not check:
        files.write(str(path), text, 0o644)
    return Plan(steps, {"series": old}, {"series": new})


if __name__ == "__main__":
    main()
