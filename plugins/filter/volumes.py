"""Filter: the claims whose files are, or may be, on a file system, from the volumes of a cluster."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

MARK = "trainyard.dev/file-system"
"""Label with which the role storage records the EFS file system of a volume."""

MANAGED = ("app.kubernetes.io/managed-by", "trainyard")


def claims_on(
    volumes: Sequence[Mapping[str, Any]],
    file_system: str,
    addresses: Collection[str] = (),
    folder: str = "",
    namespace: str = "",
) -> list[str]:
    """Return the claims, as `namespace/name`, that are bound to a volume on a file system, or on an unknown one.

    A folder or a server's name does not identify the file system behind it. Volumes of the site count unless their
    label names another file system. The present inventory does not matter.

    :param volumes: persistent volumes from the API.
    :param file_system: id of the file system.
    :param addresses: of its mount targets.
    :param folder: its mount point on nodes; all volumes below it count, too.
    :param namespace: of the shared claims; its volumes count, too.
    """
    found = []
    for volume in volumes:
        if (volume.get("status") or {}).get("phase") != "Bound":
            continue
        claim = volume["spec"]["claimRef"]
        ours = claim["namespace"] == namespace or _labels(volume).get(MANAGED[0]) == MANAGED[1]
        if _names(volume, file_system, addresses) or _may_be(volume, folder, ours):
            found.append(f"{claim['namespace']}/{claim['name']}")
    return sorted(set(found))


def _labels(volume: Mapping[str, Any]) -> Mapping[str, str]:
    return (volume.get("metadata") or {}).get("labels") or {}


def _names(volume: Mapping[str, Any], file_system: str, addresses: Collection[str]) -> bool:
    """Return whether a volume names the file system by its label, its handle, or the name or address of its server."""
    server = str((volume["spec"].get("nfs") or {}).get("server", ""))
    return file_system in json.dumps([_labels(volume).get(MARK), volume["spec"]]) or server in addresses


def _may_be(volume: Mapping[str, Any], folder: str, ours: bool) -> bool:
    """Return whether a volume names no file system, and is the site's or below the folder of the site."""
    if MARK in _labels(volume):
        return False
    spec = volume["spec"]
    path = str((spec.get("hostPath") or spec.get("local") or {}).get("path", ""))
    if path:
        return ours or (bool(folder) and f"{path}/".startswith(f"{folder.rstrip('/')}/"))
    server = str((spec.get("nfs") or {}).get("server", ""))
    return bool(server) and ours and not _tells(server)


def _tells(server: str) -> bool:
    """Return whether a server's name identifies it: an address, or a name of EFS."""
    try:
        ipaddress.ip_address(server)
    except ValueError:
        return ".efs." in server
    return True


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"claims_on": claims_on}
