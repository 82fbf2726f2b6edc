#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/kube/gpu_offer.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_wait
short_description: Wait until a node offers its GPUs
description:
  - Waits until the node's device plugin is of the newest version of its DaemonSet, is ready, and the node offers as
    many GPUs as it should. Changes nothing.
  - A node's capacity alone would not do. It outlives the plugin by minutes.
  - Runs where the kubeconfig is, usually on the controller.
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
  name:
    description: Name of the node.
    type: str
    required: true
  setting:
    description: Value of the label C(trainyard.dev/gpu-setting) of the plugin's pods.
    type: str
    required: true
  wanted:
    description: GPUs that the node should offer, shares counted; V(0) waits for the plugin only.
    type: int
    required: true
  all_healthy:
    description:
      - Wait until pods can have all of them.
      - Without it a node with unhealthy GPUs is good enough, once it has stayed so for some seconds.
    type: bool
    default: false
  timeout:
    description: Limit in seconds.
    type: int
    default: 300
attributes:
  check_mode:
    support: full
    description: Waits for nothing, because what it would wait for was not done.
  diff_mode:
    support: none
    description: There is nothing to show.
requirements: [kubernetes]
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
  description: Those of them that pods cannot have.
  returned: success, not in check mode
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.kube.gpu_offer import wait_for_gpus
from ansible.module_utils.trainyard.kube.kubeconfig import connect


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
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
