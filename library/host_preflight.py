#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/facts.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_preflight
short_description: Refuse a host that cannot be a cluster node, and report its properties
description:
  - Reads operating system, memory, CPUs, free space, capabilities and used ports of a host. Changes nothing, and fails
    with all reasons at once if the host does not meet the requirements.
options:
  host:
    description: Name of the host, for the error.
    type: str
    required: true
  memory_min_mib:
    description: Minimum memory in MiB; a cgroup's limit counts.
    type: int
    required: true
  cpu_min:
    description: Minimum number of CPUs; a cgroup's quota counts.
    type: float
    required: true
  disk_free_min_mib:
    description: Minimum free space in MiB, by path.
    type: dict
    required: true
  in_use_by:
    description: If this file exists, the host is in use. Too little space is then only a warning, in check mode a
      change.
    type: path
    default: ""
  cluster:
    description: Cluster of the inventory that the host belongs to. A node of another cluster is refused; without this
      option, the membership is not checked.
    type: dict
    suboptions:
      kubeconfig:
        description: Path of its kubeconfig on the controller.
        type: str
        required: true
      name:
        description: Its name there; empty if the kubeconfig does not exist yet.
        type: str
        default: ""
      server:
        description: Its address there.
        type: str
        default: ""
      ca:
        description: Its certificate authority, PEM.
        type: str
        default: ""
  files:
    description: Files that the site writes as a whole. A file with other settings is refused, unless O(replace) lists
      it.
    type: list
    elements: path
    default: []
  replace:
    description: Files that may be replaced, as for M(host_files).
    type: list
    elements: path
    default: []
  features:
    description: Required kernel features, as for M(kernel_settings).
    type: list
    elements: str
    choices: [overlay, br_netfilter, nf_conntrack, nf_tables, ip_set, veth, vxlan, fuse]
    default: []
  sysctls:
    description: Kernel parameters that must exist, name -> value; a feature that is not loaded yet may provide them.
    type: dict
    default: {}
  ports:
    description: Reserved TCP ports, port -> file name of the only program that may listen there.
    type: dict
    default: {}
  first_boot_timeout:
    description: Seconds to wait until cloud-init has finished and no other program uses dpkg. Other checks follow.
    type: int
    default: 0
  resolv_conf:
    description: Resolver file for pods of this node; empty for the one that kubeadm would choose on this host.
    type: str
    default: ""
  networks:
    description: Networks of the cluster, name of the variable -> network. A host that is no node must need nothing
      inside them, and its firewall must not drop packets of pods (C(kubernetes_pod_cidr)).
    type: dict
    default: {}
  needed_ports:
    description: Ports that other hosts need, as mappings of port, protocol and sources (addresses or networks). The
      firewall of a host that is no node must not close them.
    type: list
    elements: dict
    default: []
  firewall_address:
    description: Address of the host in the inventory, if the role C(firewall) is on for it; then the host must have no
      other firewall, and a node must have this address.
    type: str
    default: ""
  cni_dirs:
    description: Folders whose CNI files of others are reported.
    type: list
    elements: path
    default: []
  iptables_legacy:
    description: Whether kube-proxy and Calico use iptables-legacy of the host.
    type: bool
    default: false
  cpu_flags:
    description: Required flags of the processor, as in C(/proc/cpuinfo).
    type: list
    elements: str
    default: []
  images_mib:
    description: Size of the site's images in MiB, which a new node pulls.
    type: int
    default: 0
  eviction:
    description: Eviction thresholds of the kubelet, signal -> for example C(15%). Other units are not compared.
    type: dict
    default: {}
  cgroup:
    description: Lowest version of the cgroup hierarchy.
    type: int
    choices: [1, 2]
    default: 1
  proxied:
    description: Whether the site has a proxy. Otherwise the result lists the files of the host that name one.
    type: bool
    default: false
  systems:
    description: Supported systems as ID-VERSION_ID of C(/etc/os-release).
    type: list
    elements: str
    required: true
attributes:
  check_mode:
    description: Runs as usual, and shows too little space on a host in use as a change. Nothing is ever changed.
    support: full
  diff_mode:
    description: Shows too little space.
    support: none
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Check the host
  host_preflight:
    host: "{{ inventory_hostname }}"
    memory_min_mib: 1700
    cpu_min: 2
    disk_free_min_mib: {"/var/lib": 5000}
    systems: ["debian-13"]
"""

RETURN = r"""
host:
  description: Properties of the host - system, kernel, memory_mib, cpus, free_mib, container, clock_settable,
    clock_kept, modules_directory, systemd, root, certificate_store, machine, cpu_flags, size_mib, cgroup, machine_id,
    network_manager, hosts_template, firewall, flushes, cni_dir.
  returned: always
  type: dict
proxies:
  description: Path -> proxy without its login, of files that set one for all programs; empty with O(proxied).
  returned: always
  type: dict
cluster:
  description: Cluster in the host's own files - source, name, server, cas (SHA-256), whether this project created it
    there (made), and whether this project has changed this host (known). Empty for a host that is not a node.
  returned: always
  type: dict
cni_files:
  description: Folder -> CNI files of others in it.
  returned: always
  type: dict
reasons:
  description: Why the host is refused, each with code (key of the table of checks), cause and remedy.
  returned: if the host is refused
  type: list
  elements: dict
ansible_facts:
  description: C(node_address), the address of an existing node, or empty; C(firewall_is_kept), whether the host has a
    table of the role C(firewall); and C(cluster_is_known), true if the host is not a node of a cluster other than
    O(cluster).
  returned: success
  type: dict
steps:
  description: Findings of check mode on a host in use, one sentence each.
  returned: always
  type: list
  elements: str
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.finding import shown
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.proxy import of_files
from ansible.module_utils.trainyard.core.runner import fail
from ansible.module_utils.trainyard.host import cluster_membership, facts, first_boot, remains, software
from ansible.module_utils.trainyard.host.facts import Needs, observe, problems, space_findings, space_problems
from ansible.module_utils.trainyard.host.kernel import FEATURES
from ansible.module_utils.trainyard.host.preflight_checks import refuse

CLUSTER: dict[str, Any] = {
    "kubeconfig": {"type": "str", "required": True},
    "name": {"type": "str", "default": ""},
    "server": {"type": "str", "default": ""},
    "ca": {"type": "str", "default": ""},
}


def _needs(params: dict[str, Any]) -> Needs:
    """Return the requirements. A threshold in bytes depends on no size, so `disk_free_min_mib` covers it."""
    eviction = {signal: str(value) for signal, value in params["eviction"].items()}
    return Needs(
        params["memory_min_mib"],
        params["cpu_min"],
        {path: int(least) for path, least in params["disk_free_min_mib"].items()},
        params["systems"],
        in_use=os.path.exists(params["in_use_by"]),
        cpu_flags=params["cpu_flags"],
        images_mib=params["images_mib"],
        eviction={signal: float(value[:-1]) for signal, value in eviction.items() if value.endswith("%")},
        cgroup=params["cgroup"],
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "memory_min_mib": {"type": "int", "required": True},
            "cpu_min": {"type": "float", "required": True},
            "disk_free_min_mib": {"type": "dict", "required": True},
            "in_use_by": {"type": "path", "default": ""},
            "cluster": {"type": "dict", "options": CLUSTER},
            "files": {"type": "list", "elements": "path", "default": []},
            "replace": {"type": "list", "elements": "path", "default": []},
            "features": {"type": "list", "elements": "str", "choices": list(FEATURES), "default": []},
            "sysctls": {"type": "dict", "default": {}},
            "ports": {"type": "dict", "default": {}},
            "first_boot_timeout": {"type": "int", "default": 0},
            "resolv_conf": {"type": "str", "default": ""},
            "networks": {"type": "dict", "default": {}},
            "needed_ports": {"type": "list", "elements": "dict", "default": []},
            "firewall_address": {"type": "str", "default": ""},
            "cni_dirs": {"type": "list", "elements": "path", "default": []},
            "iptables_legacy": {"type": "bool", "default": False},
            "cpu_flags": {"type": "list", "elements": "str", "default": []},
            "images_mib": {"type": "int", "default": 0},
            "eviction": {"type": "dict", "default": {}},
            "cgroup": {"type": "int", "choices": [1, 2], "default": 1},
            "proxied": {"type": "bool", "default": False},
            "systems": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    # Until then, disks may still grow, and packages and files may appear.
    unready = first_boot.wait(module.params["first_boot_timeout"])
    needs = _needs(module.params)
    host = observe([*needs.disk_mib, *facts.SIGNALS.values()])
    space = space_findings(host, needs) if needs.in_use else []
    if space and not module.check_mode:
        for problem in space_problems(host, needs):
            module.warn(f"{module.params['host']}: {problem}")
    member = cluster_membership.look()
    cni_files = remains.cni_files(module.params["cni_dirs"])
    seen = {"host": host.as_dict(), "cluster": cluster_membership.as_dict(member), "cni_files": cni_files}
    found = [*([unready] if unready else []), *problems(host, needs), *software.problems(module.params, member)]
    try:
        refuse(module.params["host"], found)
    except TrainyardError as error:
        # Other checks compare the hosts, refused ones too.
        error.facts.update(seen)
        fail(module, error)
    given = module.params["cluster"]
    facts_found = {"node_address": facts.node_address(), "firewall_is_kept": host.firewall}
    plan = shown(Plan(), space if module.check_mode else [])
    module.exit_json(
        changed=plan.changed,
        diff=plan.diff(),
        steps=[step.what for step in plan.steps],
        proxies={} if module.params["proxied"] else of_files(),
        **seen,
        ansible_facts=facts_found | ({"cluster_is_known": True} if given else {}),
    )


if __name__ == "__main__":
    main()
