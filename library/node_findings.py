#!/usr/bin/python
"""Find what a host has that is neither kubeadm's, nor a package's, nor the site's."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_findings
short_description: Find what a host has that is not the site's
description:
  - Looks for units that are edited or have a stranger's drop-in, drop-ins of strangers for containerd and what they
    change, flags that are added to the kubelet, static pods that are not kubeadm's, and certificates that end soon.
  - With O(kubeadm_config) it compares the static pods of the control plane with what kubeadm would write for this host,
    and the members of etcd with O(members), instead.
  - Nothing of it is repaired here. A check run shows each as a change, any other run warns of each and reports none.
options:
  units:
    description: Names of units to the packages that bring them, such as C(kubelet.service) to V(kubelet).
    type: dict
    default: {}
  containerd:
    description: Look at containerd's drop-in files.
    type: bool
    default: false
  certificates:
    description: Patterns of files with a certificate, or with one inside as kubeconfigs have it.
    type: list
    elements: path
    default: []
  certificate_days:
    description: Days that a certificate should be valid for yet.
    type: int
    default: 30
  kubelet:
    description: Look at the kubelet's flags and for static pods that are not kubeadm's.
    type: bool
    default: false
  kubeadm_config:
    description: Documents of the kubeadm configuration for this host of the control plane.
    type: list
    elements: dict
    default: []
  members:
    description: Names of the nodes that should be members of etcd. Empty leaves the members alone.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Shows every finding as a change; otherwise warns of it and has changed nothing.
  diff_mode:
    support: full
    description: Shows what is there, and what should be.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look for what others have changed
  node_findings:
    units: {kubelet.service: kubelet, containerd.service: containerd.io}
    containerd: true
    kubelet: true
    certificates: [/etc/kubernetes/pki/*.crt]
"""

RETURN = r"""
for_a_person:
  description: The findings, one sentence each.
  type: list
  elements: str
  returned: always
"""

import time
from collections.abc import Iterator

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, run_with_findings
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.host.containerd_config import containerd_findings
from ansible.module_utils.trainyard.host.unit_files import flag_findings, unit_findings
from ansible.module_utils.trainyard.kubeadm.etcd import look_at_members
from ansible.module_utils.trainyard.kubeadm.expiry import dates_of, ending
from ansible.module_utils.trainyard.kubeadm.program import Host
from ansible.module_utils.trainyard.kubeadm.static_pods import changed_pods, unknown_pods


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
