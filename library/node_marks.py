#!/usr/bin/python
"""Keep the labels and the taint by which nodes are told apart."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_marks
short_description: Keep the labels and the taint by which nodes are told apart
description:
  - kubeadm marks a control plane node once, when it makes or joins it, and a kubelet sets its node's name as a label
    when it starts. What somebody takes away stays away; this sets it again. Other labels and taints are left alone.
  - Nodes that are not in the cluster yet are passed over.
  - Runs where the kubeconfig is, usually on the controller.
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
  nodes:
    description: Names of the site's nodes.
    type: list
    elements: str
    required: true
  control_plane:
    description: Those of them that are of the control plane.
    type: list
    elements: str
    required: true
  schedulable:
    description: Control plane nodes take ordinary pods, and need no taint.
    type: bool
    default: false
notes:
  - In check mode an API server that does not answer is no error; the result says that nothing could be planned.
attributes:
  check_mode:
    support: full
    description: Looks as always, and sets nothing.
  diff_mode:
    support: full
    description: Shows the marks before and after.
requirements: [kubernetes]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Mark the nodes
  node_marks:
    kubeconfig: /var/lib/trainyard/kubeconfig
    nodes: [cp1, worker1]
    control_plane: [cp1]
"""

RETURN = r"""
steps:
  description: What was (in check mode would be) set, one sentence for each node.
  type: list
  elements: str
  returned: always
planned:
  description: False when check mode could not ask the API server.
  type: bool
  returned: when it could not be asked
unread:
  description: Why check mode could not read the present state.
  type: str
  returned: when I(planned) is false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.kubeconfig import connect
from ansible.module_utils.trainyard.kube.node_marks import plan_marks


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "control_plane": {"type": "list", "elements": "str", "required": True},
            "schedulable": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params

    def make_plan() -> Plan:
        try:
            names = (params["nodes"], params["control_plane"])
            return plan_marks(connect(params["kubeconfig"]), *names, schedulable=params["schedulable"])
        except KubeError as error:
            if not (module.check_mode and error.no_answer):
                raise
            module.exit_json(changed=True, planned=False, unread=str(error), steps=[f"Not planned: {error}"])
            raise

    run_plan(module, make_plan)


if __name__ == "__main__":
    main()
