#!/usr/bin/python
"""Refuse ports of the nodes that another Service holds."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_ports
short_description: Refuse ports of the nodes that another Service holds
description:
  - The API server gives a port of the nodes to one Service alone, and refuses the second one late, when a run has
    changed much. This lists the Services of all namespaces, and fails with the one that holds a port.
  - Where the API server cannot be asked, it warns and refuses nothing. The run may be what mends that server.
  - Runs where the kubeconfig is, usually on the controller.
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
  ports:
    description: The ports, each by the variable that names it.
    type: dict
    required: true
  owner:
    description: The Service that they are for, as C(NAMESPACE/NAME). What it holds already is its own.
    type: str
    required: true
attributes:
  check_mode:
    support: full
    description: The same in check mode, nothing is ever changed.
requirements: [kubernetes]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Refuse a port that is taken
  node_ports:
    kubeconfig: /var/lib/trainyard/kubeconfig
    ports: {dashboard_node_port: 30443}
    owner: trainyard-console/console
"""

RETURN = r"""
looked:
  description: False when the API server could not be asked.
  type: bool
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.kubeconfig import connect
from ansible.module_utils.trainyard.kube.node_ports import taken_ports


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "ports": {"type": "dict", "required": True},
            "owner": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    ports = {name: int(port) for name, port in params["ports"].items()}
    try:
        services = connect(params["kubeconfig"]).list("v1", "Service")
    except KubeError as error:
        module.warn(f"Not looked whether the ports of {', '.join(ports)} are free: {error}")
        module.exit_json(changed=False, looked=False)
    except TrainyardError as error:
        fail(module, error)
    if problems := taken_ports(services, ports, params["owner"]):
        module.fail_json(msg=" ".join(problems))
    module.exit_json(changed=False, looked=True)


if __name__ == "__main__":
    main()
