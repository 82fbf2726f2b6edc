#!/usr/bin/python
"""Undo kubeadm init or join on a confirmed host."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubeadm_reset
short_description: Undo kubeadm init or join on a confirmed host
description:
  - Destroys all Kubernetes data on the host, including etcd data, and the remains of the network.
  - A host whose init or join was interrupted at any point is reset, too. A host without such data is not changed.
  - The confirmation is an option of this module, so that no limit, tag or start at a later task can skip it.
options:
  name:
    description: Name of this host in the inventory.
    type: str
    required: true
  confirmed:
    description: Names of the hosts that may be reset.
    type: list
    elements: str
    required: true
  paths:
    description: Files and folders to remove in addition to kubeadm's own.
    type: list
    elements: path
    default: []
  interfaces:
    description: Network interfaces to remove.
    type: list
    elements: str
    default: []
  leave_etcd:
    description:
      - Whether other members of etcd remain. If so, this host is first removed from their list, and nothing is deleted
        while they count it as a member.
    type: bool
    default: true
  node_ip:
    description: Address of the node, which identifies an etcd member that never started.
    type: str
    default: ""
  timeout:
    description: Limit in seconds for kubeadm reset.
    type: int
    default: 300
attributes:
  check_mode:
    description: Refuses and reports like a normal run.
    support: full
  diff_mode:
    description: Shows the existing state and the steps that remove it.
    support: full
extends_documentation_fragment: [kubeadm]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Undo init or join
  kubeadm_reset:
    name: "{{ inventory_hostname }}"
    confirmed: worker1,worker2
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
from ansible.module_utils.trainyard.kubeadm import kubeadm_program as adm
from ansible.module_utils.trainyard.kubeadm.reset import ResetSettings, make_plan, observe, require_confirmation

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "confirmed": {"type": "list", "elements": "str", "required": True},
    **adm.ARGUMENTS,
    "paths": {"type": "list", "elements": "path", "default": []},
    "interfaces": {"type": "list", "elements": "str", "default": []},
    "leave_etcd": {"type": "bool", "default": True},
    "node_ip": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 300},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    settings = ResetSettings(
        paths=params["paths"],
        interfaces=params["interfaces"],
        cri_socket=params["cri_socket"],
        timeout=params["timeout"],
        leave_etcd=params["leave_etcd"],
        node_ip=params["node_ip"],
        host=adm.Host(etcd=params["etcd_data_dir"]),
    )

    def plan() -> Plan:
        require_confirmation(params["name"], params["confirmed"])
        adm.wait_for_other_runs(settings.timeout)
        return make_plan(observe(settings), settings)

    run_plan(module, plan)


if __name__ == "__main__":
    main()
