#!/usr/bin/python
"""The verdict on a site: read everything, judge, keep the receipt."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: verify_site
short_description: Judge a finished site and keep the receipt
description:
  - Reads nodes, system pods, network policies and what is on record of the trainings from the API server, adds the
    findings of M(service_probe), and answers with one verdict, C(pass), C(fail) or C(unknown) (a check could not be
    made).
  - Changes nothing in the cluster. The receipt is written when something else than times and counters differs from the
    one that is there, and only then is the task changed.
  - Looks again until O(settle_timeout) as long as all that is wrong may settle by itself, such as a pod that is ending.
  - Runs on the controller. Does not fail because of a verdict; the caller decides what to do with it.
options:
  kubeconfig:
    description: Credentials of the cluster. A file that does not exist makes the verdict C(unknown).
    type: path
    required: true
  nodes:
    description: Names of the nodes that the cluster must have.
    type: list
    elements: str
    required: true
  missing_hosts:
    description: Hosts of the inventory that were not reached or have dropped out of the run; any of them is a failure.
    type: list
    elements: str
    default: []
  left_out:
    description: What the run has left out, one phrase each; the verdict cannot be C(pass) then.
    type: list
    elements: str
    default: []
  kubelet_version:
    description: Locked version without C(v).
    type: str
    required: true
  containerd_version:
    description: Locked version without C(v).
    type: str
    required: true
  locked_images:
    description:
      - Image reference to the digest that it must have where it runs (C(sha256:) and 64 hexadecimal digits).
      - An image that is neither here nor in O(made_images) makes the verdict C(unknown).
    type: dict
    default: {}
  made_images:
    description:
      - The same for the images of the bundle, which the receipt keeps.
      - When left out, as for a verdict without a bundle, they are those of the receipt that is there.
    type: dict
  system_namespaces:
    description: Namespaces whose pods must be healthy; one without any pod fails.
    type: list
    elements: str
    default: [kube-system]
  control_plane:
    description: Those of O(nodes) that are of the control plane.
    type: list
    elements: str
    default: []
  recorded:
    description:
      - Parts of the site that must be on the record of M(kube_apply) beside O(kubeconfig).
      - Without one of them nothing can be said about rights and doors.
    type: list
    elements: str
    default: []
  accepted:
    description: Rights and doors of others that the site allows, as O(accepted) of M(cluster_findings) has them.
    type: list
    elements: raw
    default: []
  probes:
    description: Node name to what M(service_probe) returned there.
    type: dict
    default: {}
  gpus:
    description:
      - Nodes that have GPUs. Each must offer as many healthy ones as it should, and have one version of its driver.
      - Node name to C(gpus) (their number, or none for those that the driver shows), C(replicas) (pods that share one),
        C(mig_strategy) (how those that MIG has divided are offered) and C(info) (what C(gpu_info) returned there).
    type: dict
    default: {}
  usage:
    description: Whether the API has to tell the use of every node, where the kubelets have certificates of the cluster.
    type: bool
    default: false
  console:
    description: How the console has to be reached; left out, nothing is checked about it.
    type: dict
    suboptions:
      ca_file: {description: Authority of its certificate, a file here. Empty for those of the system., type: str}
      certificate_file: {description: Its certificate, where the site provides it; else empty., type: str}
      name: {description: Name that its certificate has to be for. Empty for the address where it is asked., type: str}
      user: {description: A user who may log in, for the last words., type: str}
  kubelet_hosts:
    description: As C(hosts) of M(kubelet_certificates), to say why a request is pending.
    type: dict
    default: {}
  trainings:
    description: The trainings of the site. One that has ended must have learned, one that goes on must make steps.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: Name of the run., type: str, required: true}
      namespace: {description: Namespace of its pods., type: str, default: trainings}
      topology:
        description: Which roles it has.
        type: str
        choices: [parameter_server, multi_worker, single, service]
        default: parameter_server
      description_hash:
        description: SHA-256 of what the site says of it; a run by another description fails. Empty compares nothing.
        type: str
        default: ""
      train_steps:
        description: Steps that the site asks for, and the run on record has to have; left out compares nothing.
        type: int
      accuracy_bound:
        description: Held-out accuracy that it must have reached; left out for a program that knows no bound.
        type: float
      start_timeout: {description: Seconds within which its pods run., type: float, default: 300.0}
      stall_timeout: {description: Seconds within which it makes a step., type: float, default: 120.0}
  left_alone:
    description:
      - Names of runs that go on with another description than the site's; their images may be older ones.
      - When left out, as for a verdict without a run of the role C(workloads), they are those of the receipt.
    type: list
    elements: str
  accuracy_bound:
    description: What every training that knows a bound must have reached at least; its own counts where that is higher.
    type: float
    default: 0.0
  receipt_path:
    description: File on this host for the receipt, mode 0644. Empty to write none.
    type: path
    default: ""
  document_path:
    description: File for the document of this very run, times included. It is written every time. Empty to write none.
    type: path
    default: ""
  started_at:
    description: Seconds since the epoch at which the site's run began, for the wall time. 0 if nobody knows.
    type: float
    default: 0.0
  settle_timeout:
    description: Limit in seconds for what may settle by itself. Check mode does not wait.
    type: float
    default: 90.0
attributes:
  check_mode:
    support: full
    description: Looks and judges as always, once, and writes nothing. A node that is not there yet is no failure then.
  diff_mode:
    support: full
    description: Shows the receipt's stable part before and after.
requirements: [kubernetes]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Judge the site
  verify_site:
    kubeconfig: "/srv/trainyard/kubeconfig"
    nodes: ["cp1", "worker1", "worker2"]
    kubelet_version: "1.36.3"
    containerd_version: "2.3.4"
    locked_images: "{{ lookup('locked_images') }}"
    trainings:
      - {name: mnist, accuracy_bound: 0.9}
    receipt_path: "/srv/trainyard/receipt.json"
  register: site_verdict
"""

RETURN = r"""
verdict:
  description: C(pass), C(fail) or C(unknown).
  returned: success
  type: str
problems:
  description: The checks that did not pass, one line each.
  returned: success
  type: list
  elements: str
receipt:
  description: The whole document.
  returned: success
  type: dict
table:
  description: The same for people, as lines.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.trainings.roles import TOPOLOGIES
from ansible.module_utils.trainyard.verify.site import Settings, Site

TRAINING = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "trainings"},
    "topology": {"type": "str", "choices": list(TOPOLOGIES), "default": "parameter_server"},
    "description_hash": {"type": "str", "default": ""},
    "train_steps": {"type": "int"},
    "accuracy_bound": {"type": "float"},
    "start_timeout": {"type": "float", "default": 300.0},
    "stall_timeout": {"type": "float", "default": 120.0},
}

CONSOLE = ("ca_file", "certificate_file", "name", "user")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "missing_hosts": {"type": "list", "elements": "str", "default": []},
            "left_out": {"type": "list", "elements": "str", "default": []},
            "kubelet_version": {"type": "str", "required": True},
            "containerd_version": {"type": "str", "required": True},
            "locked_images": {"type": "dict", "default": {}},
            "made_images": {"type": "dict"},
            "system_namespaces": {"type": "list", "elements": "str", "default": ["kube-system"]},
            "control_plane": {"type": "list", "elements": "str", "default": []},
            "recorded": {"type": "list", "elements": "str", "default": []},
            "accepted": {"type": "list", "elements": "raw", "default": []},
            "probes": {"type": "dict", "default": {}},
            "gpus": {"type": "dict", "default": {}},
            "usage": {"type": "bool", "default": False},
            "console": {"type": "dict", "options": {each: {"type": "str"} for each in CONSOLE}},
            "kubelet_hosts": {"type": "dict", "default": {}},
            "trainings": {"type": "list", "elements": "dict", "default": [], "options": TRAINING},
            "left_alone": {"type": "list", "elements": "str"},
            "accuracy_bound": {"type": "float", "default": 0.0},
            "receipt_path": {"type": "path", "default": ""},
            "document_path": {"type": "path", "default": ""},
            "started_at": {"type": "float", "default": 0.0},
            "settle_timeout": {"type": "float", "default": 90.0},
        },
        supports_check_mode=True,
    )
    params = {**module.params, "console": module.params["console"] or {}}
    site = Site(Settings(**params, planning=module.check_mode))
    run_plan(module, site.plan, site.result)


if __name__ == "__main__":
    main()
