#!/usr/bin/python
"""Keep the labels and the taint that identify nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_marks
short_description: Keep the labels and the taint that identify nodes
description:
  - kubeadm marks a control plane node only at init or join, and a kubelet sets the label with its node's name only at
    its start. If they are removed, this module sets them again. Other labels and taints are not changed.
  - Nodes that are not in the cluster yet are skipped.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  nodes:
    description: Names of the site's nodes.
    type: list
    elements: str
    required: true
  control_plane:
    description: Names of the control plane nodes among O(nodes).
    type: list
    elements: str
    required: true
  schedulable:
    description: Whether control plane nodes run ordinary pods, and so need no taint.
    type: bool
    default: false
notes:
  - In check mode, an unreachable API server is not an error; the result reports that nothing could be planned.
attributes:
  check_mode:
    support: full
    description: Reads as usual, and sets nothing.
  diff_mode:
    support: full
    description: Shows labels and taints before and after.
extends_documentation_fragment: [kube]
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
  description: Executed steps, or planned steps in check mode, one sentence for each node.
  type: list
  elements: str
  returned: always
planned:
  description: False if check mode could not query the API server.
  type: bool
  returned: when it could not be queried
unread:
  description: Reason why check mode could not read the current state.
  type: str
  returned: when I(planned) is false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.nodes import plan_marks


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
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
