#!/usr/bin/python
"""Find changes on a host that come from neither kubeadm, nor a package, nor the site."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_findings
short_description: Find unmanaged changes on a host
description:
  - Finds edited units and unmanaged drop-ins, unmanaged containerd drop-ins and the settings that they change, flags
    added to the kubelet, static pods that are not kubeadm's, and certificates that expire soon.
  - With O(kubeadm_config), it also compares the static pods of the control plane with kubeadm's output for this host.
    With O(members), it compares the members of etcd.
  - Repairs nothing. Check mode shows each finding as a change. A normal run warns about each and reports no change.
options:
  units:
    description: Unit name to the package that contains it, such as C(kubelet.service) to V(kubelet).
    type: dict
    default: {}
  containerd:
    description: Check containerd's drop-in files.
    type: bool
    default: false
  certificates:
    description: Patterns of files with a certificate, or of kubeconfigs with an embedded one.
    type: list
    elements: path
    default: []
  certificate_days:
    description: Minimum remaining validity of a certificate in days.
    type: int
    default: 30
  kubelet:
    description: Check the kubelet's flags, and for static pods that are not kubeadm's.
    type: bool
    default: false
  kubeadm_config:
    description: Documents of the kubeadm configuration for this control plane host.
    type: list
    elements: dict
    default: []
  members:
    description: Names of the nodes that should be members of etcd. If empty, the members are not checked.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Shows each finding as a change. Without check mode, it warns about each and reports no change.
  diff_mode:
    support: full
    description: Shows the observed and the desired state of each finding.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Find unmanaged changes
  node_findings:
    units: {kubelet.service: kubelet, containerd.service: containerd.io}
    containerd: true
    kubelet: true
    certificates: [/etc/kubernetes/pki/*.crt]
"""

RETURN = r"""
for_a_person:
  description: Findings, one sentence each.
  type: list
  elements: str
  returned: always
"""

import time
from collections.abc import Iterator

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, run_with_findings
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.host.host_findings import containerd_findings, flag_findings, unit_findings
from ansible.module_utils.trainyard.kubeadm.etcd import look_at_members
from ansible.module_utils.trainyard.kubeadm.kubeadm_program import Host
from ansible.module_utils.trainyard.kubeadm.kubelet_findings import changed_pods, dates_of, ending, unknown_pods


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "dict", "default": {}},
            "containerd": {"type": "bool", "default": False},
            "certificates": {"type": "list", "elements": "path", "default": []},
            "certificate_days": {"type": "int", "default": 30},
            "kubelet": {"type": "bool", "default": False},
            "kubeadm_config": {"type": "list", "elements": "dict", "default": []},
            "members": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    host = Host()

    def findings() -> Iterator[Finding]:
        for unit, package in params["units"].items():
            yield from unit_findings(unit, package)
        if params["containerd"]:
            yield from containerd_findings()
        if params["kubelet"]:
            yield from flag_findings("/etc/default/kubelet", "KUBELET_EXTRA_ARGS")
            yield from unknown_pods(host)
        yield from ending(params["certificates"], params["certificate_days"], time.time(), dates_of)
        if params["kubeadm_config"]:
            yield from changed_pods(host, params["kubeadm_config"])
        if params["members"]:
            yield from look_at_members(host, params["members"])

    run_with_findings(module, lambda: (Plan(), list(findings())))


if __name__ == "__main__":
    main()
