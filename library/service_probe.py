#!/usr/bin/python
"""Probe the cluster's DNS and its API Service from a node."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: service_probe
short_description: Probe the cluster's DNS, a Service and the server of shared files from this host
description:
  - Sends a DNS query for the Service C(kubernetes.default) to the cluster's DNS address over UDP, and compares the
    answer with the Service's address. Then it connects to that address over TLS and reads an HTTP status.
  - With O(kubelet_name), it does a TLS handshake with this host's kubelet, whose certificate must be from the cluster.
  - With O(mount_path), it checks that something is mounted there, and probes its server with a timeout.
  - Changes nothing, and does not fail if there is no answer; M(verify_site) evaluates the results.
options:
  dns_server:
    description: Cluster address of the DNS Service.
    type: str
    required: true
  dns_port:
    description: UDP port of the DNS server.
    type: int
    default: 53
  service_network:
    description: Network of the Services. Kubernetes assigns its first address to the API server's own Service.
    type: str
    required: true
  domain:
    description: DNS domain of the cluster.
    type: str
    default: cluster.local
  port:
    description: TCP port of the API server's Service.
    type: int
    default: 443
  path:
    description: Path of the request. By default, the API server answers it without authentication.
    type: str
    default: /readyz
  ca_path:
    description: CA file on the host for verifying the certificate. Without the file, it is not verified.
    type: path
    default: /etc/kubernetes/pki/ca.crt
  timeout:
    description: Limit in seconds for the DNS query, and again for the request.
    type: float
    default: 5.0
  mount_path:
    description: Folder at which the shared files are mounted; empty if there are none.
    type: str
    default: ""
  mount_timeout:
    description: Limit in seconds for the answer of their server.
    type: int
    default: 10
  kubelet_name:
    description: Name of this node, which its kubelet's certificate must contain; if empty, it is not checked.
    type: str
    default: ""
  kubelet_address:
    description: Address at which the kubelet listens.
    type: str
    default: 127.0.0.1
  kubelet_port:
    description: TCP port of the kubelet.
    type: int
    default: 10250
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Probe DNS and the API Service
  service_probe:
    dns_server: "10.96.0.10"
    service_network: "10.96.0.0/16"
"""

RETURN = r"""
dns:
  description: The DNS answer (C(ok), C(name), C(addresses), C(milliseconds), C(error)).
  returned: always
  type: dict
service:
  description:
    - The Service's answer (C(ok), C(address), C(status), C(verified), C(connect_milliseconds), C(milliseconds),
      C(error)).
  returned: always
  type: dict
shared_files:
  description: State of O(mount_path) (C(ok), C(path), C(error)).
  returned: when it is given
  type: dict
kubelet_certificate:
  description: The kubelet's certificate (C(ok), C(name), C(ends) in ISO 8601, C(error)).
  returned: when O(kubelet_name) is given
  type: dict
"""

import ipaddress
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.host.mounts import Mount, entry_at, probe
from ansible.module_utils.trainyard.net import dns as dns_probe
from ansible.module_utils.trainyard.net import https as verify_service
from ansible.module_utils.trainyard.net.https import certificate_end


def service_address(network: str) -> str:
    """Return the address of the Service C(kubernetes.default), the first one in the Services' network.

    :raises ValueError: this is not a network.
    """
    return str(ipaddress.ip_network(network)[1])


def probe_dns(params: dict[str, Any], name: str, expected: str) -> dict[str, Any]:
    """Query the name; `ok` if the answer is exactly the expected address."""
    kind = dns_probe.AAAA if ":" in expected else dns_probe.A
    found: dict[str, Any] = {"ok": False, "name": name, "addresses": [], "milliseconds": None, "error": ""}
    try:
        answer = dns_probe.ask(
            params["dns_server"], name, kind=kind, port=params["dns_port"], timeout=params["timeout"]
        )
    except dns_probe.DnsError as error:
        return {**found, "error": str(error)}
    found |= {"addresses": list(answer.addresses), "milliseconds": round(answer.seconds * 1000, 1)}
    if answer.addresses != (expected,):
        return {**found, "error": f"answer is {', '.join(answer.addresses) or 'empty'}, expected {expected}"}
    return {**found, "ok": True}


def probe_service(params: dict[str, Any], name: str, address: str) -> dict[str, Any]:
    """Send the request; `ok` if a healthy API server answered."""
    found: dict[str, Any] = {"ok": False, "address": address, "status": None, "milliseconds": None, "error": ""}
    try:
        reply = verify_service.request(
            address,
            params["port"],
            name=name,
            path=params["path"],
            ca_path=params["ca_path"],
            timeout=params["timeout"],
        )
    except verify_service.ServiceError as error:
        return {**found, "error": str(error)}
    found |= {
        "status": reply.status,
        "verified": reply.verified,
        "connect_milliseconds": round(reply.connect_seconds * 1000, 1),
        "milliseconds": round(reply.seconds * 1000, 1),
    }
    if reply.status not in verify_service.ANSWERS:
        return {**found, "error": f"status {reply.status} from {params['path']}"}
    return {**found, "ok": True}


def probe_mount(path: str, timeout: int) -> dict[str, Any]:
    """Find the mount and probe its server; `ok` if that answers."""
    found: dict[str, Any] = {"ok": False, "path": path, "error": ""}
    entry = entry_at(path)
    if entry is None:
        return {**found, "error": f"nothing is mounted at {path}"}
    try:
        probe(Mount(path, entry.source, probe_timeout=timeout))
    except TrainyardError as error:
        return {**found, "error": error.message}
    return {**found, "ok": True}


def probe_kubelet(params: dict[str, Any]) -> dict[str, Any]:
    """Check the kubelet's certificate; `ok` if the cluster's CA issued it."""
    found: dict[str, Any] = {"ok": False, "name": params["kubelet_name"], "ends": None, "error": ""}
    try:
        ends = certificate_end(
            params["kubelet_address"],
            params["kubelet_port"],
            name=params["kubelet_name"],
            ca_path=params["ca_path"],
            timeout=params["timeout"],
        )
    except verify_service.ServiceError as error:
        return {**found, "error": str(error)}
    return {**found, "ok": True, "ends": ends.isoformat(timespec="seconds")}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dns_server": {"type": "str", "required": True},
            "dns_port": {"type": "int", "default": 53},
            "service_network": {"type": "str", "required": True},
            "domain": {"type": "str", "default": "cluster.local"},
            "port": {"type": "int", "default": 443},
            "path": {"type": "str", "default": "/readyz"},
            "ca_path": {"type": "path", "default": "/etc/kubernetes/pki/ca.crt"},
            "timeout": {"type": "float", "default": 5.0},
            "mount_path": {"type": "str", "default": ""},
            "mount_timeout": {"type": "int", "default": 10},
            "kubelet_name": {"type": "str", "default": ""},
            "kubelet_address": {"type": "str", "default": "127.0.0.1"},
            "kubelet_port": {"type": "int", "default": 10250},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        address = service_address(params["service_network"])
    except ValueError as error:
        module.fail_json(msg=f"service_network {params['service_network']!r} is not a network: {error}.")
    name = f"kubernetes.default.svc.{params['domain']}"
    found = {"dns": probe_dns(params, name, address), "service": probe_service(params, name, address)}
    if params["mount_path"]:
        found["shared_files"] = probe_mount(params["mount_path"], params["mount_timeout"])
    if params["kubelet_name"]:
        found["kubelet_certificate"] = probe_kubelet(params)
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
