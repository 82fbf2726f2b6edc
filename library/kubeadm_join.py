#!/usr/bin/python
"""Join a host to a kubeadm cluster, and repeat an interrupted join."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubeadm_join
short_description: Join a host to a cluster with kubeadm
description:
  - Reads the host's files and, with the kubelet's own credentials, its node object, and completes the join.
  - A host that has joined this cluster is not changed. After an interrupted join, the remains are removed, and the host
    joins again.
  - While the cluster has a Ready node of the host's name, the join waits up to 90 s, because a host that was just reset
    still counts as Ready. If the node stays Ready, it belongs to another host, and the join is refused.
  - A host of another cluster, identified by its CA, is refused.
  - The CA is pinned by the hash of its public key. During the join, the token is in a file that only root can read.
  - In check mode, which also shows whether a token is needed, neither token nor CA are required.
options:
  endpoint:
    description: HOST:PORT of the API server.
    type: str
    default: ""
  ca_certificate:
    description: PEM of the cluster's CA.
    type: str
    default: ""
  ca_cert_hash:
    description: kubeadm's pin of that CA, C(sha256:) and the hex digest of its public key.
    type: str
    default: ""
  token:
    description: Bootstrap token.
    type: str
    default: ""
  certificate_key:
    description: Key of the certificates that control plane nodes share; required with O(control_plane).
    type: str
    default: ""
  control_plane:
    description: Join as a control plane node.
    type: bool
    default: false
  schedulable:
    description: Whether ordinary pods may run on this control plane node.
    type: bool
    default: false
  node_name:
    description: Name of the node.
    type: str
    required: true
  node_ip:
    description: Address of the node.
    type: str
    required: true
  kubelet_extra_args:
    description: Flags of this node's kubelet, without the leading dashes.
    type: dict
    default: {}
  timeouts:
    description: kubeadm's own limits (C(timeouts) of its v1beta4 configuration), for example C(tlsBootstrap=10m0s).
    type: dict
    default: {}
  timeout:
    description: Limit in seconds for the join.
    type: int
    default: 300
  api_timeout:
    description: Seconds within which the API server must answer a host that has joined.
    type: int
    default: 120
extends_documentation_fragment: [kubeadm, kubeadm.preflight]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Join the cluster
  kubeadm_join:
    endpoint: 192.0.2.10:6443
    ca_certificate: "{{ ca }}"
    ca_cert_hash: "sha256:{{ key_of_ca | replace(':', '') }}"
    token: "{{ token }}"
    node_name: worker1
    node_ip: 192.0.2.21
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host import resolver
from ansible.module_utils.trainyard.kubeadm import kubeadm_program as adm
from ansible.module_utils.trainyard.kubeadm.join import JoinSettings, make_plan, observe, require_credentials

ARGUMENT_SPEC = {
    "endpoint": {"type": "str", "default": ""},
    "ca_certificate": {"type": "str", "default": ""},
    "ca_cert_hash": {"type": "str", "default": ""},
    "token": {"type": "str", "default": "", "no_log": True},
    "certificate_key": {"type": "str", "default": "", "no_log": True},
    "control_plane": {"type": "bool", "default": False},
    "schedulable": {"type": "bool", "default": False},
    "node_name": {"type": "str", "required": True},
    "node_ip": {"type": "str", "required": True},
    "kubelet_extra_args": {"type": "dict", "default": {}},
    **adm.PREFLIGHT,
    **adm.ARGUMENTS,
    "timeouts": {"type": "dict", "default": {}},
    "timeout": {"type": "int", "default": 300},
    "api_timeout": {"type": "int", "default": 120},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    host = adm.Host(etcd=params["etcd_data_dir"])
    settings = JoinSettings(
        endpoint=params["endpoint"],
        ca=params["ca_certificate"],
        node_name=params["node_name"],
        node_ip=params["node_ip"],
        ca_cert_hash=params["ca_cert_hash"],
        token=params["token"],
        certificate_key=params["certificate_key"],
        control_plane=params["control_plane"],
        schedulable=params["schedulable"],
        timeouts={name: str(value) for name, value in params["timeouts"].items()},
        ignore=params["ignore_preflight_errors"],
        kubelet_extra_args={name: str(value) for name, value in params["kubelet_extra_args"].items()},
        cri_socket=params["cri_socket"],
        timeout=params["timeout"],
        resolv_conf=resolver.choose(params["resolv_conf"]),
        host=host,
    )

    def plan() -> Plan:
        adm.refuse_all(settings.ignore)
        adm.wait_for_other_runs(settings.timeout)
        state = adm.wait_while(
            lambda: observe(host, settings.node_name), lambda state: state.node == "down", params["api_timeout"]
        )
        made = make_plan(state, settings)
        if made.changed and not module.check_mode:
            adm.require_installed()
            # The restart of a kubelet needs no credentials.
            if state.node != "missing":
                require_credentials(settings)
        return made

    run_plan(module, plan)


if __name__ == "__main__":
    main()
