#!/usr/bin/python
"""Stop a run of a training after it has saved, and delete it on request."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: training_stop
short_description: Stop a run of a training after it has saved
description:
  - Makes the pods of a run save and stop, waits for them, and records the progress. If the same run is submitted again,
    it continues from there.
  - Nothing is changed unless O(confirm) is the name of the run and the run exists.
options:
  run:
    description: Name of the run.
    type: str
    required: true
  confirm:
    description: The same name, as a confirmation.
    type: str
    required: true
  delete:
    description: Whether to delete its record and its files as well.
    type: bool
    default: false
  log_dir:
    description: Folder on the controller for the logs of all its pods, as in M(training).
    type: path
    required: true
  progress_file:
    description: File for progress lines; set by the action plugin.
    type: path
attributes:
  check_mode:
    support: full
    description: Reports what would be stopped and deleted.
  diff_mode:
    support: full
    description: Shows the run before and after.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Stop a run
  training_stop:
    kubeconfig: /var/lib/trainyard/kubeconfig
    run: wide
    confirm: wide
    log_dir: /var/lib/trainyard/logs
"""

RETURN = r"""
namespace:
  description: Namespace of the run.
  type: str
  returned: success
training:
  description: The record of the run; empty if it was deleted.
  type: dict
  returned: success
  sample: {name: wide, result: stopped, steps: 1240, train_steps: 2000}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.progress import Progress
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.trainings.stop import Stop


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "run": {"type": "str", "required": True},
            "confirm": {"type": "str", "required": True},
            "delete": {"type": "bool", "default": False},
            "log_dir": {"type": "path", "required": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    stops: list[Stop] = []

    def make_plan() -> Plan:
        if params["confirm"] != params["run"]:
            raise TrainyardError(
                f"The run {params['run']} is not stopped: confirm is {params['confirm']!r}.",
                remedy="Set both run and confirm to the name of the run.",
            )
        say = Progress(params["progress_file"]).say
        stops.append(Stop(connect(params["kubeconfig"]), params["run"], params["log_dir"], say))
        return stops[0].plan(delete=params["delete"])

    def make_result() -> dict[str, Any]:
        return {"training": stops[0].result, "namespace": stops[0].namespace}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
