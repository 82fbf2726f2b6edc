#!/usr/bin/python
"""Ask the cluster's DNS and its own API Service from a node."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: service_probe
short_description: Ask the cluster's DNS, a Service and the server of shared files from this host
description:
  - Sends one DNS question for the Service C(kubernetes.default) to the cluster's DNS address by UDP, compares the
    answer with the Service's address, then connects to that address over TLS and reads one HTTP status.
  - Where O(kubelet_name) is given, shakes hands with this host's kubelet, whose certificate must be one of the cluster.
  - Where O(mount_path) is given, looks whether something is mounted there, and asks its server, which is never
    waited for.
  - Changes nothing and does not fail when nothing answers; M(verify_site) judges the findings.
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
    description: Network of the Services. Kubernetes gives its first address to the API server's own Service.
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
    description: What is asked for; the API server answers it to anybody unless told otherwise.
    type: str
    default: /readyz
  ca_path:
    description: CA file on the host that the certificate is verified with. Without the file it is not verified.
    type: path
    default: /etc/kubernetes/pki/ca.crt
  timeout:
    description: Limit in seconds for the DNS question and again for the request.
    type: float
    default: 5.0
  mount_path:
    description: Folder at which the shared files are mounted; empty where none are.
    type: str
    default: ""
  mount_timeout:
    description: Limit in seconds for the answer of their server.
    type: int
    default: 10
  kubelet_name:
    description: Name of this node, for which its kubelet's certificate has to be; empty does not look at it.
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
attributes:
  check_mode:
    support: full
    description: Changes nothing in either mode.
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Ask DNS and the API Service
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
  description: What was found at O(mount_path) (C(ok), C(path), C(error)).
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
from ansible.module_utils.trainyard.host.mount_look import entry_at, probe
from ansible.module_utils.trainyard.host.mounts import Mount
from ansible.module_utils.trainyard.net import dns as dns_probe
from ansible.module_utils.trainyard.net import https as verify_service
from ansible.module_utils.trainyard.net.certificate import certificate_end


def service_address(network: str) -> str:
    """The address of the Service C(kubernetes.default): the first one of the Services' network.

    :raises ValueError: not a network.
    """
    return str(ipaddress.ip_network(network)[1])


def probe_dns(params: dict[str, Any], name: str, expected: str) -> dict[str, Any]:
    """Ask for the name; `ok` if the expected address is the whole answer."""
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
    """Send the request; `ok` if an API server answered that is not in trouble."""
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
    """Look for a mount and ask its server; `ok` if that answers."""
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
    """Look at the kubelet's certificate; `ok` if the cluster vouches for it."""
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
