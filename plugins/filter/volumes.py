"""Filter: the claims whose files are on a file system, or may be on it, from the volumes of a cluster."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

MARK = "trainyard.dev/file-system"
"""Label by which the role storage says on which file system of EFS a volume is."""

MANAGED = ("app.kubernetes.io/managed-by", "trainyard")


def claims_on(
    volumes: Sequence[Mapping[str, Any]],
    file_system: str,
    addresses: Collection[str] = (),
    folder: str = "",
    namespace: str = "",
) -> list[str]:
    """The claims, as `namespace/name`, that are bound to a volume on a file system, or on nobody knows which.

    A folder and a server's name do not tell what is behind them: those that the site has made count unless their label
    says that they are elsewhere, whatever the inventory says by now.

    :param volumes: persistent volumes, as the API gives them.
    :param file_system: id of the file system.
    :param addresses: those of its mount targets.
    :param folder: where nodes mount it; volumes below it count, too, whoever has made them.
    :param namespace: that of the shared claims; its volumes count, too.
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
    """Whether a volume says that it is on the file system: by its label, its handle, its server's name or address."""
    server = str((volume["spec"].get("nfs") or {}).get("server", ""))
    return file_system in json.dumps([_labels(volume).get(MARK), volume["spec"]]) or server in addresses


def _may_be(volume: Mapping[str, Any], folder: str, ours: bool) -> bool:
    """Whether a volume says nothing of its file system and is the site's, or below the folder of the site."""
    if MARK in _labels(volume):
        return False
    spec = volume["spec"]
    path = str((spec.get("hostPath") or spec.get("local") or {}).get("path", ""))
    if path:
        return ours or (bool(folder) and f"{path}/".startswith(f"{folder.rstrip('/')}/"))
    server = str((spec.get("nfs") or {}).get("server", ""))
    return bool(server) and ours and not _tells(server)


def _tells(server: str) -> bool:
    """Whether a server's name says by itself which one it is: an address, or one of EFS."""
    try:
        ipaddress.ip_address(server)
    except ValueError:
        return ".efs." in server
    return True


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"claims_on": claims_on}
