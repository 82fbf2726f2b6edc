#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/kube/gpu_offer.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_wait
short_description: Wait until a node offers its GPUs
description:
  - Waits until the node's device plugin has the newest version of its DaemonSet and is ready, and the node offers the
    expected number of GPUs. Changes nothing.
  - A node's capacity alone is not enough, because it outlives the plugin by minutes.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  name:
    description: Name of the node.
    type: str
    required: true
  setting:
    description: Value of the label C(trainyard.dev/gpu-setting) of the plugin's pods.
    type: str
    required: true
  wanted:
    description: Number of GPUs that the node should offer, counting shares; V(0) waits only for the plugin.
    type: int
    required: true
  all_healthy:
    description:
      - Wait until pods can use all of them.
      - Otherwise a node with unhealthy GPUs is accepted once its state has been stable for some seconds.
    type: bool
    default: false
  timeout:
    description: Limit in seconds.
    type: int
    default: 300
attributes:
  check_mode:
    support: full
    description: Does not wait, because nothing was changed.
  diff_mode:
    support: none
    description: No changes to show.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Wait for two GPUs
  gpu_wait:
    kubeconfig: /var/lib/trainyard/kubeconfig
    name: worker1
    setting: whole
    wanted: 2
"""

RETURN = r"""
offered:
  description: GPUs that the node offers, healthy or not.
  returned: success, not in check mode
  type: int
unhealthy:
  description: Number of those GPUs that pods cannot use.
  returned: success, not in check mode
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.gpu_offer import wait_for_gpus


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "name": {"type": "str", "required": True},
            "setting": {"type": "str", "required": True},
            "wanted": {"type": "int", "required": True},
            "all_healthy": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    params = module.params
    if module.check_mode:
        module.exit_json(changed=False)
    try:
        found = wait_for_gpus(
            connect(params["kubeconfig"]),
            params["name"],
            params["setting"],
            params["wanted"],
            timeout=params["timeout"],
            all_healthy=params["all_healthy"],
        )
    except TrainyardError as error:
        fail(module, error)
    module.exit_json(changed=False, offered=found.capacity, unhealthy=max(0, params["wanted"] - found.allocatable))


if __name__ == "__main__":
    main()
