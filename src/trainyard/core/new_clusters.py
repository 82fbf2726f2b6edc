"""Control-plane flags that only new clusters get. An existing cluster without them has not drifted.

Nothing here changes a running control plane. The verdict warns if such a flag is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLAGS = ("kubelet-certificate-authority",)
PREFIXES = tuple(f"- --{name}=" for name in FLAGS)


def as_made(wanted: Any, live: Any) -> Any:
    """Return the desired ClusterConfiguration without the API server flags that the running cluster lacks.

    :param wanted: a document of the kubeadm configuration; documents of other kinds are returned unchanged.
    :param live: the same document as the cluster has it.
    """
    server = wanted.get("apiServer") if isinstance(wanted, Mapping) else None
    if not isinstance(server, Mapping) or not isinstance(flags := server.get("extraArgs"), list):
        return wanted
    there = _names(live)
    kept = [flag for flag in flags if _name(flag) not in FLAGS or _name(flag) in there]
    return {**wanted, "apiServer": {**server, "extraArgs": kept}}


def lines_as_made(wanted: str, live: str) -> str:
    """Return the desired static pod manifest without the flags that the running one lacks."""
    missing = [each for each in PREFIXES if not any(line.strip().startswith(each) for line in live.splitlines())]
    lines = [line for line in wanted.splitlines() if not line.strip().startswith(tuple(missing))] if missing else None
    return wanted if lines is None else "".join(f"{line}\n" for line in lines)


def _names(document: Any) -> set[Any]:
    server = document.get("apiServer") if isinstance(document, Mapping) else None
    flags = server.get("extraArgs") if isinstance(server, Mapping) else None
    return {_name(flag) for flag in flags} if isinstance(flags, list) else set()


def _name(flag: Any) -> Any:
    return flag.get("name") if isinstance(flag, Mapping) else None
