#!/usr/bin/python
"""Refuse node ports that another Service holds."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_ports
short_description: Refuse node ports that another Service holds
description:
  - The API server assigns a node port to only one Service, and refuses a second one late in a run, after many changes.
    This module lists the Services of all namespaces, and fails with the name of the Service that holds a port.
  - If the API server cannot be queried, the module only warns, because the run may be needed to repair that server.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  ports:
    description: Port numbers, by the variable that sets each.
    type: dict
    required: true
  owner:
    description: The Service that needs the ports, as C(NAMESPACE/NAME). It may already hold them.
    type: str
    required: true
extends_documentation_fragment: [kube, reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Refuse a port that is in use
  node_ports:
    kubeconfig: /var/lib/trainyard/kubeconfig
    ports: {dashboard_node_port: 30443}
    owner: trainyard-console/console
"""

RETURN = r"""
looked:
  description: False if the API server could not be queried.
  type: bool
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.nodes import taken_ports


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
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
        module.warn(f"Not checked whether the ports of {', '.join(ports)} are free: {error}")
        module.exit_json(changed=False, looked=False)
    except TrainyardError as error:
        fail(module, error)
    if problems := taken_ports(services, ports, params["owner"]):
        module.fail_json(msg=" ".join(problems))
    module.exit_json(changed=False, looked=True)


if __name__ == "__main__":
    main()
