#!/usr/bin/python
"""Initialise a kubeadm control plane, and complete or repeat an interrupted initialisation."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubeadm_init
short_description: Initialise the control plane of a cluster with kubeadm
description:
  - Reads the host's files, its etcd data and its API server, and completes the initialisation.
  - A complete cluster is not changed. After a power cut, the module waits until the kubelet has restarted the API
    server.
  - If this module's initialisation was interrupted and the API server answers, it continues where it stopped. If the
    API server does not answer, its remains are removed and it starts again.
  - Any other state is refused with a remedy. A cluster that was ever complete is never reset.
  - C(kubeadm config validate) checks the configuration before anything is written.
options:
  config:
    description: The documents of the kubeadm configuration (v1beta4).
    type: list
    elements: dict
    required: true
  timeout:
    description: Limit in seconds for one kubeadm command.
    type: int
    default: 300
  api_timeout:
    description: Seconds within which the API server of an existing cluster must answer.
    type: int
    default: 120
extends_documentation_fragment: [kubeadm, kubeadm.preflight]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Initialise the control plane
  kubeadm_init:
    config: "{{ lookup('ansible.builtin.template', 'kubeadm.yaml.j2') | from_yaml_all | list }}"
    ignore_preflight_errors: [SystemVerification]
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
complete:
  description: Whether the host has a complete control plane at the end.
  type: bool
  returned: always
drift:
  description: Fields of O(config) that differ from the configuration with which this cluster was created.
  type: list
  elements: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.host import resolver
from ansible.module_utils.trainyard.kubeadm import kubeadm_program as adm
from ansible.module_utils.trainyard.kubeadm.init import WANTED, InitSettings, config_drift, decide, make_plan, observe

ARGUMENT_SPEC = {
    "config": {"type": "list", "elements": "dict", "required": True},
    **adm.PREFLIGHT,
    **adm.ARGUMENTS,
    "timeout": {"type": "int", "default": 300},
    "api_timeout": {"type": "int", "default": 120},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    host = adm.Host(etcd=params["etcd_data_dir"])
    settings = InitSettings(
        config=params["config"],
        ignore=params["ignore_preflight_errors"],
        cri_socket=params["cri_socket"],
        timeout=params["timeout"],
        resolv_conf=resolver.choose(params["resolv_conf"]),
        host=host,
    )
    result: dict[str, Any] = {}

    def plan() -> Plan:
        adm.refuse_all(settings.ignore)
        if not module.check_mode:
            adm.require_installed()
        adm.wait_for_other_runs(settings.timeout)
        state = adm.wait_while(lambda: observe(host), lambda state: state.may_come_back, params["api_timeout"])
        made = make_plan(state, settings)
        if made.changed and adm.installed():
            with adm.configuration(*settings.config):
                pass
        finished = decide(state) == "none"
        result["drift"] = config_drift(host, settings.config) if finished else []
        result["complete"] = finished or not module.check_mode
        if result["drift"]:
            module.warn(
                "The kubeadm configuration differs from the one with which this cluster was created, in "
                f"{', '.join(result['drift'])}. An existing cluster is not changed. To change it, follow "
                f"'Change the control plane' in docs/tasks/operations.md with {host.state}/{WANTED} on this host."
            )
        return made

    run_plan(module, plan, lambda: result)


if __name__ == "__main__":
    main()
