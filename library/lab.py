#!/usr/bin/python
"""Bring a lab of system containers and emulated machines to the state that the inventory describes."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: lab
short_description: System containers and emulated machines that behave like servers
description:
  - Creates a network without a way out, SSH keys with pinned host keys, and one system container or emulated machine
    for each node, and waits until every node answers on SSH.
  - Existing nodes are started when they do not run, also after a power cut, and otherwise left alone; they are never
    made anew.
  - Touches only what carries the label of this lab; a container or network of the same name without it is refused.
  - Runs on the computer that carries them, as root.
options:
  name:
    description: Name of the lab; prefix of its containers, volumes and network.
    type: str
    required: true
  state:
    description:
      - V(absent) removes the nodes that O(nodes) names, with their volumes and keys.
      - Without O(nodes) it removes everything - all nodes, the network, the firewall table and the state directory.
    type: str
    choices: [present, absent]
    default: present
  subnet:
    description: IPv4 network of the lab; its first address is this machine.
    type: str
    required: true
  nodes:
    description: Address in the subnet of each node, by host name.
    type: dict
    default: {}
  volumes:
    description: Folders of every node that get a volume of their own.
    type: list
    elements: str
    default: []
  shared:
    description: Folder that all system containers of the lab have in common; none without it.
    type: str
  image:
    description: The nodes' image as the bundle returns it, with C(layout) (path of the OCI layout) and C(digest).
    type: dict
    default: {}
  kinds:
    description: What the nodes are, C(container) or C(machine), by name; a node that is not named is a container.
    type: dict
    default: {}
  machine:
    description: What every emulated machine is given.
    type: dict
    suboptions:
      image:
        description: Folder of C(disk.raw), C(vmlinuz) and C(initrd.img), as the bundle makes it.
        type: path
      cpus:
        description: Virtual CPUs.
        type: int
      memory_mib:
        description: Memory in MiB.
        type: int
      disk_gib:
        description: Size of the disk in GiB; it takes room only as it fills.
        type: int
      accelerator:
        description: V(auto) takes KVM where a kernel really starts under it, else software emulation (V(tcg)).
        type: str
        choices: [auto, kvm, tcg]
      boot_timeout:
        description: Seconds until a started machine must answer on SSH.
        type: int
  gpus:
    description: GPUs of the containers that are not there; nodes have none without it.
    type: dict
    suboptions:
      counts:
        description: How many each node has, by name.
        type: dict
      folder:
        description: What the bundle made of its entry C(lab_gpus).
        type: path
      profile:
        description: Model, one of the folder's C(profiles.json).
        type: str
      driver:
        description: Version of the driver that the nodes seem to have.
        type: str
      cuda:
        description: Newest CUDA that the driver seems to know.
        type: str
  state_dir:
    description:
      - Folder of everything that the site keeps on this machine; the SSH keys and the known hosts lie in it.
      - Its last part must be O(name), because it is removed as a whole; only a folder that the lab has marked is.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would be created, started or removed.
  diff_mode:
    support: full
    description: Shows the state of each node before and after.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Bring up a lab of one node
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
  description: Path of the private key that opens the nodes.
  returned: always
  type: str
known_hosts:
  description: Path of the file with the nodes' pinned host keys.
  returned: always
  type: str
steps:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
"""

import os
from dataclasses import replace
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.lock import locked
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.lab import gpus, host, keys, machines, model, network, nodes
from ansible.module_utils.trainyard.lab.podman import missing

LOCK_TIMEOUT = 300.0
"""Seconds to wait for another run on the same lab."""


def plan_present(lab: model.Lab, states: dict[str, str]) -> Plan:
    """The steps of O(state=present), in the order in which they must be done."""
    if absent := missing(*(machines.PROGRAMS if lab.machines else ())):
        states.update({node.name: "absent" for node in lab.nodes})
        what = f"Make the lab once {', '.join(absent)} can be called"
        return Plan([Step(what, lambda: _impossible(absent))], {"network": "absent", **states})
    steps = keys.plan_marker(lab)
    # A lab that is there already has changed the settings.
    steps += host.plan_record(lab) if steps else []
    network_steps, found = network.plan(lab)
    steps += network_steps
    steps += host.plan_inotify()
    steps += keys.plan_keys(lab)
    containers = nodes.containers(lab)
    node_steps, node_states = nodes.plan_nodes(lab, containers)
    if "absent" in node_states.values():
        steps += nodes.plan_image(lab)
    machine_steps, machine_states = machines.plan(lab, containers, network.bridge(lab))
    node_steps += machine_steps
    node_states |= machine_states
    states.update(node_states)
    # The way out is closed before the first node starts.
    steps += network.plan_firewall(lab) + node_steps
    gpu_steps = gpus.plan(lab, node_states)
    if node_steps:
        steps.append(Step("Wait for SSH on every node", lambda: _reach(lab)))
    elif found == "present":
        network.assert_route(lab)
    steps += gpu_steps
    return Plan(
        steps, {"network": found, **node_states}, {"network": "present", **dict.fromkeys(node_states, "running")}
    )


def plan_absent(lab: model.Lab) -> Plan:
    """The steps of O(state=absent)."""
    carried = not missing()
    found = sorted(nodes.containers(lab)) if carried else []
    emulated = machines.known(lab) if carried else []
    before = {"containers": found, "machines": emulated}
    if lab.nodes:
        gone = [node.name for node in lab.nodes]
        after = {
            "containers": [name for name in found if name not in [lab.container(node) for node in lab.nodes]],
            "machines": [name for name in emulated if name not in gone],
        }
        steps = machines.plan_removal(lab, [name for name in emulated if name in gone])
        return Plan(steps + nodes.plan_node_removal(lab, found), before, after)
    steps = machines.plan_removal(lab, emulated)
    steps += nodes.plan_removal(lab, found) + network.plan_removal(lab) if carried else []
    # Refused before anything is removed, and done last.
    steps += host.plan_restore(lab) + keys.plan_state_removal(lab)
    return Plan(steps, before, {"containers": [], "machines": []})


def _impossible(absent: list[str]) -> None:
    raise TrainyardError(
        f"Not installed, or not on the PATH: {', '.join(absent)}.",
        remedy="Install the packages of lab_packages, for machines also those of lab_machine_packages.",
    )


def _reach(lab: model.Lab) -> None:
    network.assert_route(lab)
    nodes.wait_for_ssh(lab)


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
        lab = replace(model.parse(module.params), gpus=gpus.parse(module.params["gpus"] or {}))
        paths.update(ssh_key=str(lab.ssh_key), known_hosts=str(lab.known_hosts))
        return plan_present(lab, states) if module.params["state"] == "present" else plan_absent(lab)

    # Two runs would overwrite each other's list of known hosts.
    lock = Path("/run/lock") / f"trainyard-{module.params['name']}"
    with locked(lock, what="another run on the same lab to finish", timeout=LOCK_TIMEOUT):
        run_plan(module, make_plan, lambda: {"nodes": states, **paths})


if __name__ == "__main__":
    main()
