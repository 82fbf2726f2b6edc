#!/usr/bin/python
"""Drain a node, cordon it, or make it schedulable again."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_drain
short_description: Cordon a node and evict its pods
description:
  - Cordons the node and evicts all its pods except static pods and those of DaemonSets. It uses the Eviction API, so
    that pod disruption budgets hold. If a budget refuses an eviction, it is retried until O(timeout).
  - If pods remain then, the module fails with their names, and makes the node schedulable again unless it was cordoned
    before.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  name:
    description: Name of the node.
    type: str
    required: true
  state:
    description:
      - V(drained) evicts the pods and leaves the node cordoned.
      - V(cordoned) prevents new pods, and keeps the existing ones.
      - V(schedulable) removes a cordon, but only one that this module set.
    type: str
    choices: [drained, cordoned, schedulable]
    default: drained
  delete_empty_dir:
    description: Evict pods with C(emptyDir) volumes on disk, whose data is lost. Otherwise such a pod is refused.
    type: bool
    default: false
  timeout:
    description: Limit in seconds until all pods are gone.
    type: int
    default: 300
attributes:
  check_mode:
    support: full
    description: Reports which pods would be evicted.
  diff_mode:
    support: full
    description: Shows the cordon and the pods before and after.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Drain a worker
  node_drain:
    kubeconfig: /var/lib/trainyard/kubeconfig
    name: worker2
    delete_empty_dir: true
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
pods:
  description: The remaining pods, as C(namespace/name).
  type: list
  elements: str
  returned: when pods remain after the timeout
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.nodes import Drain, plan_cordon, plan_drain, plan_uncordon


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "cordoned", "schedulable"], "default": "drained"},
            "delete_empty_dir": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    params = module.params

    def make_plan() -> Plan:
        api = connect(params["kubeconfig"])
        if params["state"] == "schedulable":
            return plan_uncordon(api, params["name"])
        if params["state"] == "cordoned":
            return plan_cordon(api, params["name"])
        return plan_drain(api, Drain(params["name"], params["delete_empty_dir"], params["timeout"]))

    run_plan(module, make_plan)


if __name__ == "__main__":
    main()
