"""Filter: names and addresses that the certificate of a kubelet may contain, from the inventory."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

FACTS = re.compile(r"ansible_facts|ansible_(default|all)_ipv")
"""Marks of a value that comes from a host."""
WORDS = re.compile(r"[A-Za-z_]\w*")


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
        said = [_said(hostvars, host, name) for name in ("kubernetes_node_ip", "ansible_host")]
        addresses = [text for text in said if _is_address(text)]
        # The controller may reach a host at another address than the node's own.
        found[node] = {"names": [node], "addresses": addresses[:1]}
    return found


def _said(hostvars: Any, host: str, name: str) -> str:
    """Return a variable of the inventory as text; empty if it is not set, or comes from facts."""
    raw: Mapping[str, Any] = hostvars.raw_get(host) if hasattr(hostvars, "raw_get") else hostvars[host]
    if name not in raw or _is_made_of_facts(raw, name, set()):
        return ""
    return str(hostvars[host].get(name) or "")


def _is_made_of_facts(raw: Mapping[str, Any], name: str, seen: set[str]) -> bool:
    """Return whether a value uses facts, directly or through other variables."""
    seen.add(name)
    text = str(raw[name])
    named = {word for word in WORDS.findall(text) if word in raw} - seen if "{{" in text else set()
    return bool(FACTS.search(text)) or any(_is_made_of_facts(raw, word, seen) for word in named)


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
