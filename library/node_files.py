#!/usr/bin/python
"""Keep a node's kubelet configuration as the cluster has it, and kubeadm's files to their owner."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_files
short_description: Keep a node's kubelet configuration and the modes of its keys
description:
  - Compares the kubelet's configuration with the cluster's (ConfigMap C(kubelet-config)), which kubeadm wrote it from,
    gives the node that again where it differs, and restarts the kubelet. A kubelet that runs with an older one is
    restarted, too.
  - Where somebody else than kubeadm wrote the ConfigMap last, the node does not follow it. That is for a person, whom a
    check run shows it as a change, and any other run warns.
  - Takes from others than their owner what they may do with the kubeconfigs, keys, certificates and static pods of
    kubeadm and the kubelet, beyond what these give them.
  - A host that is no node yet has nothing of this.
options:
  cri_socket:
    description: URL of the container runtime's socket, which is the host's own.
    type: str
    default: unix:///run/containerd/containerd.sock
attributes:
  check_mode:
    support: full
    description: Looks as always, and changes nothing.
  diff_mode:
    support: full
    description: Shows the configuration's lines and the modes, before and after.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep the files of the node
  node_files:
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done.
  type: list
  elements: str
  returned: always
for_a_person:
  description: What is not repaired, one sentence each.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, run_with_findings
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.kubeadm import kubelet_config
from ansible.module_utils.trainyard.kubeadm.modes import plan_modes, wanted_modes
from ansible.module_utils.trainyard.kubeadm.program import Host


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "cri_socket": {"type": "str", "default": "unix:///run/containerd/containerd.sock"},
        },
        supports_check_mode=True,
    )
    host = Host()

    def look() -> tuple[Plan, list[Finding]]:
        if not host.has("kubelet.conf"):
            return Plan(), []
        modes = plan_modes(wanted_modes(host))
        plan, findings = kubelet_config.make_plan(kubelet_config.observe(host), module.params["cri_socket"], host)
        before = {**(modes.before or {}), **(plan.before or {})}
        return Plan([*modes.steps, *plan.steps], before, {**(modes.after or {}), **(plan.after or {})}), findings

    run_with_findings(module, look)


if __name__ == "__main__":
    main()
