#!/usr/bin/python
"""Keep a node's kubelet configuration equal to the cluster's, and restrict the modes of kubeadm's files."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_files
short_description: Keep a node's kubelet configuration and the modes of its keys
description:
  - Compares the kubelet's configuration with the cluster's (ConfigMap C(kubelet-config)), from which kubeadm wrote it.
    If they differ, it restores the node's configuration and restarts the kubelet. A kubelet that still runs with an
    older configuration is also restarted.
  - If something other than kubeadm wrote the ConfigMap last, the node ignores it until an operator acts. Check mode
    shows that as a change; a normal run warns.
  - Restricts owners and modes of the kubeconfigs, keys, certificates and static pods to those with which kubeadm and
    the kubelet write them.
  - Does nothing on a host that is not a node yet.
options:
  cri_socket:
    description: URL of the container runtime's socket, which is specific to the host.
    type: str
    default: unix:///run/containerd/containerd.sock
  resolv_conf:
    description: Resolver file for pods of this node; empty for the one that kubeadm would choose on this host.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
    description: Reads as usual, and changes nothing.
  diff_mode:
    support: full
    description: Shows the lines of the configuration and the modes, before and after.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Keep the node's files
  node_files:
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode.
  type: list
  elements: str
  returned: always
for_a_person:
  description: Findings that an operator must resolve, one sentence each.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, run_with_findings
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.host import resolver
from ansible.module_utils.trainyard.kubeadm import kubelet_files
from ansible.module_utils.trainyard.kubeadm.kubeadm_program import Host
from ansible.module_utils.trainyard.kubeadm.kubelet_files import plan_modes, wanted_modes


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "cri_socket": {"type": "str", "default": "unix:///run/containerd/containerd.sock"},
            "resolv_conf": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    host = Host()

    def look() -> tuple[Plan, list[Finding]]:
        if not host.has("kubelet.conf"):
            return Plan(), []
        modes = plan_modes(wanted_modes(host))
        resolv_conf = resolver.choose(module.params["resolv_conf"])
        plan, findings = kubelet_files.make_plan(
            kubelet_files.observe(host), module.params["cri_socket"], host, resolv_conf
        )
        before = {**(modes.before or {}), **(plan.before or {})}
        return Plan([*modes.steps, *plan.steps], before, {**(modes.after or {}), **(plan.after or {})}), findings

    run_with_findings(module, look)


if __name__ == "__main__":
    main()
