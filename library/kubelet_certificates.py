#!/usr/bin/python
"""Approve kubelets' requests for serving certificates that match the inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubelet_certificates
short_description: Approve the serving certificates of the inventory's kubelets
description:
  - A kubelet with C(serverTLSBootstrap) requests the certificate for serving logs, exec and metrics from the cluster,
    and serves nothing until the request is approved. Kubernetes does not approve it, because it does not know which
    names belong to the host.
  - Approves a request only if its signer, user, groups and usages are those of a kubelet, and its subject, DNS names
    and addresses are those of this host in the inventory. All other requests stay pending and are returned.
  - Waits until each node in O(nodes) has requested a certificate or serves already, and at the end until all serve.
  - Runs on the controller.
options:
  hosts:
    description:
      - Node name to the permitted C(names) (DNS names) and C(addresses) in the host's certificate.
      - These must come from the inventory, never from the host itself.
    type: dict
    required: true
  nodes:
    description: Nodes that must serve at the end, such as those of this run. Check mode does not wait for them.
    type: list
    elements: str
    default: []
  timeout:
    description: Limit in seconds for each of the two waits.
    type: int
    default: 90
attributes:
  check_mode:
    support: full
    description: Reads and checks once, and approves nothing. Without a cluster, nothing can be planned.
  diff_mode:
    support: full
    description: Shows the requests before and after.
requirements: [kubernetes, cryptography]
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Approve the requests of this run's kubelets
  kubelet_certificates:
    kubeconfig: /var/lib/trainyard/kubeconfig
    hosts:
      worker1: {names: [worker1], addresses: [10.1.0.21]}
    nodes: [worker1]
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
left:
  description: Name of each request that stays pending, to its node and the reason.
  type: dict
  returned: always
planned:
  description: False if check mode could not reach the API server.
  type: bool
  returned: always
unread:
  description: Reason why check mode could not read the current state.
  type: str
  returned: when I(planned) is false
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.apply import unreachable_plan
from ansible.module_utils.trainyard.kube.certificate_requests import (
    KubeletHost,
    Seen,
    plan_approvals,
    wait_until_served,
)
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "hosts": {"type": "dict", "required": True},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 90},
        },
        supports_check_mode=True,
    )
    params = module.params
    hosts = {node: KubeletHost.of(known["names"], known["addresses"]) for node, known in params["hosts"].items()}
    nodes = [] if module.check_mode else params["nodes"]
    found: dict[str, Any] = {"seen": Seen(), "planned": True}

    def make_plan() -> Plan:
        try:
            plan, found["seen"] = plan_approvals(connect(params["kubeconfig"]), hosts, nodes, timeout=params["timeout"])
        except KubeError as error:
            if not (module.check_mode and error.no_answer):
                raise
            found["planned"] = False
            return unreachable_plan([], error.message)
        return plan

    def make_result() -> dict[str, Any]:
        if nodes:
            wait_until_served(connect(params["kubeconfig"]), hosts, nodes, timeout=params["timeout"])
        return {"left": dict(found["seen"].left), "planned": found["planned"]}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
