#!/usr/bin/python
"""Empty a node of its pods, keep new ones away, or make it schedulable again."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_drain
short_description: Cordon a node and evict its pods
description:
  - Cordons the node and evicts all its pods through the Eviction API, except those of DaemonSets and static pods, so
    that pod disruption budgets hold. An eviction that a budget refuses is tried again until O(timeout).
  - Pods that are left then are a failure that names them. The node is schedulable again then, unless it was cordoned
    before.
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
  state:
    description:
      - V(drained) empties the node and leaves it cordoned.
      - V(cordoned) keeps new pods away, and leaves those that are there.
      - V(schedulable) takes back the cordon that this module has made, and only that.
    type: str
    choices: [drained, cordoned, schedulable]
    default: drained
  delete_empty_dir:
    description: Evict pods with C(emptyDir) volumes on disk; their data is lost. Without it such a pod is refused.
    type: bool
    default: false
  timeout:
    description: Limit in seconds for all pods to be gone.
    type: int
    default: 300
attributes:
  check_mode:
    support: full
    description: Says which pods would be evicted.
  diff_mode:
    support: full
    description: Shows the cordon and the pods before and after.
requirements: [kubernetes]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Empty a worker
  node_drain:
    kubeconfig: /var/lib/trainyard/kubeconfig
    name: worker2
    delete_empty_dir: true
"""

RETURN = r"""
steps:
  description: What was (in check mode would be) done, one sentence each.
  type: list
  elements: str
  returned: always
pods:
  description: The pods that are left, as C(namespace/name).
  type: list
  elements: str
  returned: when pods are left at the limit
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.drain import Drain, plan_cordon, plan_drain, plan_uncordon
from ansible.module_utils.trainyard.kube.kubeconfig import connect


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
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
