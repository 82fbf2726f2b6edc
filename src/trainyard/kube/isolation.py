"""Evaluate which connections NetworkPolicies allow between two pods.

The rules are the API's (https://kubernetes.io/docs/concepts/services-networking/network-policies/). If no policy
selects a pod for a direction, the pod is open in it. Otherwise only connections that a policy allows pass. Policies of
a network plugin's own kinds are ignored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.untrusted import whole
from .api import Object

INGRESS, EGRESS = "Ingress", "Egress"
_RULES = {INGRESS: ("ingress", "from"), EGRESS: ("egress", "to")}


@dataclass(frozen=True)
class End:
    """One end of a connection: the properties of a pod that policies match on.

    :param labels: labels of the pod.
    :param space: labels of its namespace.
    :param ports: name of a container port -> number.
    """

    namespace: str
    labels: Mapping[str, str]
    space: Mapping[str, str]
    address: str = ""
    ports: Mapping[str, int] | None = None


def end(pod: Object, space: Mapping[str, str]) -> End:
    """Return the properties of a pod that policies match on.

    :param space: labels of its namespace.
    """
    ports = {
        str(port["name"]): int(port["containerPort"])
        for container in pod["spec"].get("containers") or []
        for port in container.get("ports") or []
        if "name" in port
    }
    address = str((pod.get("status") or {}).get("podIP") or "")
    return End(pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}, space, address, ports)


def blocking(
    policies: Sequence[Object], source: End, target: End, port: int, protocol: str = "TCP"
) -> tuple[str, list[str]] | None:
    """Return why a connection between two pods is blocked; None if it is allowed.

    :param policies: NetworkPolicies of both namespaces.
    :return: the direction, and the names of the policies that block it.
    """
    for direction, mine, other in ((EGRESS, source, target), (INGRESS, target, source)):
        chosen = [each for each in policies if _selects(each, mine, direction)]
        if chosen and not any(_admits(each, mine, other, target, direction, port, protocol) for each in chosen):
            return direction, sorted(str(each["metadata"]["name"]) for each in chosen)
    return None


def _selects(policy: Object, pod: End, direction: str) -> bool:
    spec = policy.get("spec") or {}
    types = spec.get("policyTypes") or [INGRESS, *([EGRESS] if spec.get("egress") else [])]
    same = policy["metadata"]["namespace"] == pod.namespace
    return same and direction in types and selected(spec.get("podSelector") or {}, pod.labels)


def _admits(policy: Object, mine: End, other: End, target: End, direction: str, port: int, protocol: str) -> bool:
    rules, peers = _RULES[direction]
    for rule in policy["spec"].get(rules) or []:
        ports = rule.get("ports") or []
        if ports and not any(_is_port(each, target, port, protocol) for each in ports):
            continue
        if not rule.get(peers) or any(_is_peer(each, mine, other) for each in rule[peers]):
            return True
    return False


def _is_port(wanted: Mapping[str, Any], target: End, port: int, protocol: str) -> bool:
    if wanted.get("protocol", "TCP") != protocol:
        return False
    if wanted.get("port") is None:
        return True
    first = wanted["port"] if isinstance(wanted["port"], int) else (target.ports or {}).get(str(wanted["port"]), -1)
    return bool(first <= port <= (whole(wanted.get("endPort")) or first))


def _is_peer(peer: Mapping[str, Any], mine: End, other: End) -> bool:
    if "ipBlock" in peer:
        return _within(other.address, peer["ipBlock"])
    space = peer.get("namespaceSelector")
    right = other.namespace == mine.namespace if space is None else selected(space, other.space)
    return right and selected(peer.get("podSelector") or {}, other.labels)


def _within(address: str, block: Mapping[str, Any]) -> bool:
    if not address:
        return False
    there = ipaddress.ip_address(address)
    return there in ipaddress.ip_network(block["cidr"]) and not any(
        there in ipaddress.ip_network(each) for each in block.get("except") or []
    )


def selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches these labels; an empty one matches all."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _holds(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(wanted["key"]), wanted.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[wanted["operator"]]
