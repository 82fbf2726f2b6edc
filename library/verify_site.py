#!/usr/bin/python
"""Check a site, and store the verdict as a receipt."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: verify_site
short_description: Check a finished site and store the receipt
description:
  - Reads nodes, system pods, network policies and the records of trainings from the API server, adds the results of
    M(service_probe), and returns one verdict, C(pass), C(fail) or C(unknown) (a check was not possible).
  - Changes nothing in the cluster. The receipt is written if it differs from the existing one in more than times and
    counters, and only then the task reports a change.
  - If all problems may settle by themselves, such as a terminating pod, it checks again until O(settle_timeout).
  - Runs on the controller. A bad verdict is not a failure; the caller decides what to do.
options:
  kubeconfig:
    description: Credentials of the cluster. If the file does not exist, the verdict is C(unknown).
    type: path
    required: true
  nodes:
    description: Names of the nodes that the cluster must have.
    type: list
    elements: str
    required: true
  missing_hosts:
    description: Hosts of the inventory that were unreachable or dropped out of the run; any such host is a failure.
    type: list
    elements: str
    default: []
  left_out:
    description: Parts that the run skipped, one phrase each; the verdict then cannot be C(pass).
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
      - Image reference to the digest that running containers must have (C(sha256:) and 64 hexadecimal digits).
      - If an image is neither here nor in O(made_images), the verdict is C(unknown).
    type: dict
    default: {}
  made_images:
    description:
      - The same for the images of the bundle, which are stored in the receipt.
      - Without it, as for a verdict without a bundle, those of the existing receipt are used.
    type: dict
  system_namespaces:
    description: Namespaces whose pods must be healthy; a namespace without pods fails.
    type: list
    elements: str
    default: [kube-system]
  control_plane:
    description: Names of the control plane nodes among O(nodes).
    type: list
    elements: str
    default: []
  recorded:
    description:
      - Parts of the site that must be in the record of M(kube_apply) next to O(kubeconfig).
      - If one of them is missing, permissions and access paths cannot be checked.
    type: list
    elements: str
    default: []
  accepted:
    description: Accepted permissions and access paths of others, as in O(accepted) of M(cluster_findings).
    type: list
    elements: raw
    default: []
  probes:
    description: Node name to the result of M(service_probe) there.
    type: dict
    default: {}
  gpus:
    description:
      - Nodes with GPUs. Each must offer the expected number of healthy GPUs, and have a consistent driver version.
      - Node name to C(gpus) (number, or none for those that the driver shows), C(replicas) (pods that share a GPU),
        C(mig_strategy) (how GPUs divided by MIG are offered) and C(info) (the result of M(gpu_info) there).
    type: dict
    default: {}
  usage:
    description: Whether the API must report the resource usage of all nodes, if their kubelets have certificates of
      the cluster.
    type: bool
    default: false
  console:
    description: Expected access to the console; without it, the console is not checked.
    type: dict
    suboptions:
      ca_file: {description: CA file of its certificate on the controller. Empty for the system's CAs., type: str}
      certificate_file: {description: File of its certificate if the site provides it; otherwise empty., type: str}
      name: {description: Name that its certificate must contain. Empty for the address of the probe., type: str}
      user: {description: A user who may log in; shown in the final message., type: str}
  kubelet_hosts:
    description: The same as C(hosts) of M(kubelet_certificates), to explain why a request is pending.
    type: dict
    default: {}
  trainings:
    description: Trainings of the site. An ended one must have learned, and a running one must make steps.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: Name of the run., type: str, required: true}
      namespace: {description: Namespace of its pods., type: str, default: trainings}
      topology:
        description: Topology, which determines the roles.
        type: str
        choices: [parameter_server, multi_worker, single, service]
        default: parameter_server
      description_hash:
        description: SHA-256 of its description in the site; a run with another description fails. If empty, it is not
          compared.
        type: str
        default: ""
      train_steps:
        description: Number of steps in the site's description, which the recorded run must have; without it, it is not
          compared.
        type: int
      accuracy_bound:
        description: Minimum held-out accuracy; omit it for a program without a bound.
        type: float
      start_timeout: {description: Seconds within which its pods must run., type: float, default: 300.0}
      stall_timeout: {description: Seconds within which it must make a step., type: float, default: 120.0}
  left_alone:
    description:
      - Names of running runs whose description differs from the site's; their images may be older.
      - Without it, as for a verdict without a run of the role C(workloads), those of the receipt are used.
    type: list
    elements: str
  accuracy_bound:
    description: Minimum accuracy of all trainings with a bound; a training's own bound counts if it is higher.
    type: float
    default: 0.0
  receipt_path:
    description: File on this host for the receipt, mode 0644. Empty to write none.
    type: path
    default: ""
  document_path:
    description: File for this run's document, including times. It is written in each run. Empty to write none.
    type: path
    default: ""
  started_at:
    description: Start of the site's run in seconds since the epoch, for the wall time; 0 if unknown.
    type: float
    default: 0.0
  settle_timeout:
    description: Limit in seconds for problems that may settle by themselves. Check mode does not wait.
    type: float
    default: 90.0
attributes:
  check_mode:
    support: full
    description: Reads and checks once, and writes nothing. A node that does not exist yet is then not a failure.
  diff_mode:
    support: full
    description: Shows the receipt's stable part before and after.
requirements: [kubernetes]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Check the site
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
  description: Checks that did not pass, one line each.
  returned: success
  type: list
  elements: str
receipt:
  description: The whole document.
  returned: success
  type: dict
table:
  description: The verdict as a readable table, as lines.
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
