"""Filter: names and addresses that the certificate of a kubelet may contain, from the inventory."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from trainyard.site.stated import stated


def kubelet_hosts(hosts: Sequence[str], hostvars: Any) -> dict[str, dict[str, list[str]]]:
    """Return node name -> DNS names and addresses of its host.

    An address from facts is left out, because a host could then choose its own certificate.

    :param hosts: names of the cluster's hosts.
    :param hostvars: Ansible's variables of all hosts, including the untemplated values.
    """
    found = {}
    for host in hosts:
        known = hostvars[host]
        node = str(known.get("kubernetes_node_name") or host)
        said = [stated(hostvars, host, name) for name in ("kubernetes_node_ip", "ansible_host")]
        addresses = [text for text in said if _is_address(text)]
        # The controller may reach a host at another address than the node's own.
        found[node] = {"names": [node], "addresses": addresses[:1]}
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"kubelet_hosts": kubelet_hosts}
