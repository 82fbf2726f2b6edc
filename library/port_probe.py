#!/usr/bin/python
"""Thin module; the logic is in src/trainyard/host/port_probe.py."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: port_probe
short_description: Probe whether packets pass between hosts that are no nodes yet
description:
  - Listens on ports of a host for a short time, or connects from a host to ports of others. Writes no file except a
    socket in C(/run), which disappears with the listener.
  - Runs in check mode, too.
options:
  state:
    description: C(listening) starts a process that listens on O(ports), and ends after O(seconds) or when all runs that
      use it have stopped it. C(connected) connects to O(targets). C(stopped) releases the listener.
    type: str
    choices: [listening, connected, stopped]
    required: true
  run:
    description: Identifier of the run, for C(listening) and C(stopped).
    type: str
    default: ""
  seconds:
    description: Time after which the listener ends by itself.
    type: float
    default: 60
  ports:
    description: Ports to listen on. A port of another program is left alone.
    type: list
    elements: dict
    default: []
    suboptions:
      port:
        description: Number of the port.
        type: int
        required: true
      protocol:
        description: Protocol of the port.
        type: str
        choices: [tcp, udp]
        default: tcp
  targets:
    description: Ports of other hosts.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the host, for the result.
        type: str
        required: true
      address:
        description: Its IPv4 address.
        type: str
        required: true
      listens:
        description: Whether a listener of this module has the port. If not, a refused connection counts as reached.
        type: bool
        default: false
      port:
        description: Number of the port.
        type: int
        required: true
      protocol:
        description: Protocol of the port.
        type: str
        choices: [tcp, udp]
        default: tcp
attributes:
  check_mode:
    description: Runs as usual; nothing is changed.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Listen on the kubelet's port
  port_probe:
    state: listening
    run: "5c1f"
    ports: [{port: 10250, protocol: tcp}]

- name: Connect to the API server
  port_probe:
    state: connected
    targets: [{host: cp1, address: "10.1.0.10", port: 6443, protocol: tcp, listens: false}]
"""

RETURN = r"""
ports:
  description: Ports of the listener, each with port and protocol. A port of another program is left out.
  returned: if O(state=listening)
  type: list
  elements: dict
unreached:
  description: Targets that the host does not reach, each with host, address, port, protocol and why.
  returned: if O(state=connected)
  type: list
  elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.host import port_probe

PORT: dict[str, Any] = {
    "port": {"type": "int", "required": True},
    "protocol": {"type": "str", "choices": ["tcp", "udp"], "default": "tcp"},
}
TARGET: dict[str, Any] = {
    **PORT,
    "host": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "listens": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["listening", "connected", "stopped"], "required": True},
            "run": {"type": "str", "default": ""},
            "seconds": {"type": "float", "default": 60},
            "ports": {"type": "list", "elements": "dict", "options": PORT, "default": []},
            "targets": {"type": "list", "elements": "dict", "options": TARGET, "default": []},
        },
        supports_check_mode=True,
    )
    given = module.params
    found: dict[str, Any] = {}
    if given["state"] == "listening":
        wanted = [(each["port"], each["protocol"]) for each in given["ports"]]
        opened = port_probe.start(wanted, given["run"], given["seconds"])
        found["ports"] = [{"port": port, "protocol": protocol} for port, protocol in opened]
    elif given["state"] == "connected":
        targets = [port_probe.Target(**each) for each in given["targets"]]
        found["unreached"] = [
            {"host": each.host, "address": each.address, "port": each.port, "protocol": each.protocol, "why": why}
            for each, why in port_probe.unreached(targets)
        ]
    else:
        port_probe.stop(given["run"])
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
