"""The resolver file that a node's kubelet gives to pods, and resolvers there that pods cannot reach."""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path

from ..core.errors import CommandError
from .facts import text_of
from .preflight_checks import Reason, reason
from .units import properties_of

DEFAULT = "/etc/resolv.conf"
"""The kubelet's own default."""
RESOLVED = "/run/systemd/resolve/resolv.conf"
"""The servers of systemd-resolved without its stub on 127.0.0.53 (systemd-resolved.service(8))."""
RESOLVED_UNIT = "systemd-resolved.service"


def choose(configured: str, root: Path = Path("/")) -> str:
    """Return the resolver file for pods of this node.

    :param configured: `kubernetes_resolv_conf` of the host; empty for the choice that kubeadm makes on this host:
        systemd-resolved's file where it runs, else the kubelet's default.
    """
    if configured:
        return configured
    return RESOLVED if (root / RESOLVED.lstrip("/")).is_file() and _runs() else DEFAULT


def problems(path: str, root: Path = Path("/")) -> list[Reason]:
    """Return why pods could not resolve names with a resolver file: CoreDNS would ask itself, and end."""
    found = [server for server in servers(path, root) if ipaddress.ip_address(server).is_loopback]
    return [reason("local_resolver", path=path, address=" and ".join(found))] if found else []


def servers(path: str, root: Path = Path("/")) -> list[str]:
    """Return the addresses of a resolver file, without zones of IPv6; a missing file has none (resolv.conf(5))."""
    found = []
    for words in map(str.split, text_of(root / path.lstrip("/")).splitlines()):
        if words[:1] == ["nameserver"] and len(words) > 1:
            with contextlib.suppress(ValueError):
                found.append(str(ipaddress.ip_address(words[1].partition("%")[0])))
    return found


def _runs() -> bool:
    try:
        return properties_of(RESOLVED_UNIT, ("ActiveState",)).get("ActiveState") == "active"
    except CommandError:
        return False
