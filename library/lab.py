#!/usr/bin/python
"""Bring a lab of system containers to the state that the inventory describes."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: lab
short_description: System containers that behave like servers
description:
  - Creates a network without a way out, SSH keys with pinned host keys, and one system container for each node, and
    waits until every node answers on SSH.
  - Existing nodes are started when they do not run, also after a power cut, and otherwise left alone; they are never
    made anew.
  - Touches only what carries the label of this lab; a container or network of the same name without it is refused.
  - Runs on the machine that carries the containers, as root.
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
  image:
    description: The nodes' image as the bundle returns it, with C(layout) (path of the OCI layout) and C(digest).
    type: dict
    default: {}
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
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.lock import locked
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.lab import host, keys, model, network, nodes
from ansible.module_utils.trainyard.lab.podman import installed

LOCK_TIMEOUT = 300.0
"""Seconds to wait for another run on the same lab."""


def plan_present(lab: model.Lab, states: dict[str, str]) -> Plan:
    """The steps of O(state=present), in the order in which they must be done."""
    if not installed():
        states.update({node.name: "absent" for node in lab.nodes})
        return Plan([Step("Make the lab once podman is installed", _impossible)], {"network": "absent", **states})
    steps = keys.plan_marker(lab)
    # A lab that is there already has changed the settings.
    steps += host.plan_record(lab) if steps else []
    network_steps, found = network.plan(lab)
    steps += network_steps
    steps += host.plan_inotify()
    steps += keys.plan_keys(lab)
    node_steps, node_states = nodes.plan_nodes(lab, nodes.containers(lab))
    states.update(node_states)
    if "absent" in node_states.values():
        steps += nodes.plan_image(lab)
    # The way out is closed before the first node starts.
    steps += network.plan_firewall(lab) + node_steps
    if node_steps:
        steps.append(Step("Wait for SSH on every node", lambda: _reach(lab)))
    elif found == "present":
        network.assert_route(lab)
    return Plan(
        steps, {"network": found, **node_states}, {"network": "present", **dict.fromkeys(node_states, "running")}
    )


def plan_absent(lab: model.Lab) -> Plan:
    """The steps of O(state=absent)."""
    found = sorted(nodes.containers(lab)) if installed() else []
    if lab.nodes:
        gone = [lab.container(node) for node in lab.nodes]
        left = [name for name in found if name not in gone]
        return Plan(nodes.plan_node_removal(lab, found), {"containers": found}, {"containers": left})
    steps = nodes.plan_removal(lab, found) + network.plan_removal(lab) if installed() else []
    # Refused before anything is removed, and done last.
    return Plan(
        steps + host.plan_restore(lab) + keys.plan_state_removal(lab), {"containers": found}, {"containers": []}
    )


def _impossible() -> None:
    raise TrainyardError(
        "podman, nftables or iproute2 is not installed.", remedy="Install the packages of lab_packages."
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
            "image": {"type": "dict", "default": {}},
            "state_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    states: dict[str, str] = {}
    paths: dict[str, str] = {}

    def make_plan() -> Plan:
        if os.geteuid() != 0:
            raise TrainyardError("The lab needs root on this machine.", remedy="Run as root.")
        lab = model.parse(module.params)
        paths.update(ssh_key=str(lab.ssh_key), known_hosts=str(lab.known_hosts))
        return plan_present(lab, states) if module.params["state"] == "present" else plan_absent(lab)

    # Two runs would overwrite each other's list of known hosts.
    lock = Path("/run/lock") / f"trainyard-{module.params['name']}"
    with locked(lock, what="another run on the same lab to finish", timeout=LOCK_TIMEOUT):
        run_plan(module, make_plan, lambda: {"nodes": states, **paths})


if __name__ == "__main__":
    main()
