#!/usr/bin/python
"""Bring a lab of system containers and emulated machines to the state that the inventory describes."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: lab
short_description: System containers and emulated machines that behave like servers
description:
  - Creates a network without outbound access, SSH keys with pinned host keys, and one system container or emulated
    machine per node, and waits until all nodes answer on SSH.
  - Existing nodes are started if they are not running, for example after a power cut. They are never recreated.
  - Changes only objects with the label of this lab; a container or network of the same name without it is refused.
  - Runs as root on the machine that hosts the lab.
options:
  name:
    description: Name of the lab; prefix of its containers, volumes and network.
    type: str
    required: true
  state:
    description:
      - V(absent) removes the nodes in O(nodes), with their volumes and keys.
      - Without O(nodes), it removes all nodes, the network, the firewall table and the state directory.
    type: str
    choices: [present, absent]
    default: present
  subnet:
    description: IPv4 network of the lab; its first address is this machine.
    type: str
    required: true
  nodes:
    description: Host name of each node to its address in the subnet.
    type: dict
    default: {}
  volumes:
    description: Folders that get a volume of their own on each node.
    type: list
    elements: str
    default: []
  shared:
    description: Folder that all system containers of the lab share; by default none.
    type: str
  image:
    description: The nodes' image, with C(layout) (path of the OCI layout) and C(digest), as returned by M(bundle).
    type: dict
    default: {}
  kinds:
    description: Node name to its kind, C(container) or C(machine); the default is a container.
    type: dict
    default: {}
  machine:
    description: Settings of all emulated machines.
    type: dict
    suboptions:
      image:
        description: Folder with C(disk.raw), C(vmlinuz) and C(initrd.img), built by M(bundle).
        type: path
      cpus:
        description: Virtual CPUs.
        type: int
      memory_mib:
        description: Memory in MiB.
        type: int
      disk_gib:
        description: Size of the disk in GiB; space is allocated as the disk fills.
        type: int
      accelerator:
        description: V(auto) uses KVM if a kernel really starts with it, otherwise software emulation (V(tcg)).
        type: str
        choices: [auto, kvm, tcg]
      boot_timeout:
        description: Seconds until a started machine must answer on SSH.
        type: int
  gpus:
    description: Simulated GPUs of the containers; by default nodes have none.
    type: dict
    suboptions:
      counts:
        description: Node name to its number of GPUs.
        type: dict
      folder:
        description: Folder of the bundle's artefact C(lab_gpus).
        type: path
      profile:
        description: Model, from the folder's C(profiles.json).
        type: str
      driver:
        description: Version of the simulated driver.
        type: str
      cuda:
        description: Newest CUDA version that the simulated driver supports.
        type: str
  state_dir:
    description:
      - Folder for the site's data on this machine, including the SSH keys and the known hosts.
      - Its last part must be O(name), because it is removed as a whole, but only if the lab has marked it.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Reports what would be created, started or removed.
  diff_mode:
    support: full
    description: Shows the state of each node before and after.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Create a lab of one node
  lab:
    name: trainyard
    subnet: 10.84.0.0/24
    state_dir: /var/lib/trainyard/trainyard
    image:
      layout: /var/cache/trainyard/artefacts/image_lab_node-0123456789abcdef/oci
      digest: sha256:0123
    nodes:
      worker1: 10.84.0.21
    volumes: [/var/lib/containerd]
"""

RETURN = r"""
nodes:
  description: State of each node before the run (absent, stopped or running).
  returned: when O(state=present)
  type: dict
ssh_key:
  description: Path of the private key for the nodes.
  returned: always
  type: str
known_hosts:
  description: Path of the file with the nodes' pinned host keys.
  returned: always
  type: str
steps:
  description: Executed steps, or planned steps in check mode.
  returned: always
  type: list
  elements: str
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.flock import locked
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.lab import host, keys, lab_model, lab_nodes, machines, network, simulated_gpus
from ansible.module_utils.trainyard.lab.host import missing

LOCK_TIMEOUT = 300.0
"""Seconds to wait for another run on the same lab."""


def plan_present(lab: lab_model.Lab, states: dict[str, str]) -> Plan:
    """Plan the steps of O(state=present), in order."""
    if absent := missing(*(machines.PROGRAMS if lab.machines else ())):
        states.update({node.name: "absent" for node in lab.nodes})
        what = f"Create the lab after the installation of {', '.join(absent)}"
        return Plan([Step(what, lambda: _refuse(absent))], {"network": "absent", **states})
    steps = keys.plan_marker(lab)
    # An existing lab has already changed the settings.
    steps += host.plan_record(lab) if steps else []
    network_steps, found = network.plan(lab)
    steps += network_steps
    steps += host.plan_inotify()
    steps += keys.plan_keys(lab)
    containers = lab_nodes.containers(lab)
    node_steps, node_states = lab_nodes.plan_nodes(lab, containers)
    if "absent" in node_states.values():
        steps += lab_nodes.plan_image(lab)
    machine_steps, machine_states = machines.plan(lab, containers, network.bridge_of(lab))
    node_steps += machine_steps
    node_states |= machine_states
    states.update(node_states)
    # Outbound traffic is blocked before the first node starts.
    steps += network.plan_firewall(lab) + node_steps
    gpu_steps = simulated_gpus.plan(lab, node_states)
    if node_steps:
        steps.append(Step("Wait for SSH on all nodes", lambda: _reach(lab)))
    elif found == "present":
        network.assert_route(lab)
    steps += gpu_steps
    return Plan(
        steps, {"network": found, **node_states}, {"network": "present", **dict.fromkeys(node_states, "running")}
    )


def plan_absent(lab: lab_model.Lab) -> Plan:
    """Plan the steps of O(state=absent).

    :raises TrainyardError: the lab may have nodes, and a program that removes them is missing.
    """
    absent = missing()
    if absent and lab.state_dir.exists():
        # Without its folder, the lab's remaining containers, network and firewall table would have no record.
        _refuse(absent)
    carried = not absent
    found = sorted(lab_nodes.containers(lab)) if carried else []
    emulated = machines.known(lab) if carried else []
    before = {"containers": found, "machines": emulated}
    if lab.nodes:
        gone = [node.name for node in lab.nodes]
        after = {
            "containers": [name for name in found if name not in [lab.container(node) for node in lab.nodes]],
            "machines": [name for name in emulated if name not in gone],
        }
        steps = machines.plan_removal(lab, [name for name in emulated if name in gone])
        return Plan(steps + lab_nodes.plan_node_removal(lab, found), before, after)
    steps = machines.plan_removal(lab, emulated)
    steps += lab_nodes.plan_removal(lab, found) + network.plan_removal(lab) if carried else []
    # Planned here to refuse before anything is removed, but executed last.
    steps += host.plan_restore(lab) + keys.plan_state_removal(lab)
    return Plan(steps, before, {"containers": [], "machines": []})


def _refuse(absent: list[str]) -> NoReturn:
    raise TrainyardError(
        f"Not installed, or not on the PATH: {', '.join(absent)}.",
        remedy="Install the packages in lab_packages, and for machines also those in lab_machine_packages.",
    )


def _reach(lab: lab_model.Lab) -> None:
    network.assert_route(lab)
    lab_nodes.wait_for_ssh(lab)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "subnet": {"type": "str", "required": True},
            "nodes": {"type": "dict", "default": {}},
            "volumes": {"type": "list", "elements": "str", "default": []},
            "shared": {"type": "str"},
            "image": {"type": "dict", "default": {}},
            "kinds": {"type": "dict", "default": {}},
            "machine": {
                "type": "dict",
                "options": {
                    "image": {"type": "path"},
                    **{key: {"type": "int"} for key in ("cpus", "memory_mib", "disk_gib", "boot_timeout")},
                    "accelerator": {"type": "str", "choices": ["auto", "kvm", "tcg"]},
                },
            },
            "gpus": {
                "type": "dict",
                "options": {
                    "counts": {"type": "dict"},
                    "folder": {"type": "path"},
                    **{key: {"type": "str"} for key in ("profile", "driver", "cuda")},
                },
            },
            "state_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    states: dict[str, str] = {}
    paths: dict[str, str] = {}

    def make_plan() -> Plan:
        if os.geteuid() != 0:
            raise TrainyardError("The lab needs root on this machine.", remedy="Run as root.")
        lab = replace(lab_model.parse(module.params), gpus=simulated_gpus.parse(module.params["gpus"] or {}))
        paths.update(ssh_key=str(lab.ssh_key), known_hosts=str(lab.known_hosts))
        return plan_present(lab, states) if module.params["state"] == "present" else plan_absent(lab)

    # Two runs would overwrite each other's list of known hosts.
    lock = Path("/run/lock") / f"trainyard-{module.params['name']}"
    with locked(lock, what="another run on the same lab to finish", timeout=LOCK_TIMEOUT):
        run_plan(module, make_plan, lambda: {"nodes": states, **paths})


if __name__ == "__main__":
    main()
