"""Flags of the control plane that only a new cluster gets: a living one may lack them, and that is no drift.

Nothing here changes a living control plane. The verdict warns where such a flag is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLAGS = ("kubelet-certificate-authority",)
PREFIXES = tuple(f"- --{name}=" for name in FLAGS)


def as_made(wanted: Any, live: Any) -> Any:
    """A ClusterConfiguration that is asked for, without the flags of the API server that the living one lacks.

    :param wanted: a document of the kubeadm configuration; one of another kind comes back as it is.
    :param live: the document that the cluster has.
    """
    server = wanted.get("apiServer") if isinstance(wanted, Mapping) else None
    if not isinstance(server, Mapping) or not isinstance(flags := server.get("extraArgs"), list):
        return wanted
    there = _names(live)
    kept = [flag for flag in flags if _name(flag) not in FLAGS or _name(flag) in there]
    return {**wanted, "apiServer": {**server, "extraArgs": kept}}


def lines_as_made(wanted: str, live: str) -> str:
    """The text of a static pod that is asked for, without the flags that the living one lacks."""
    missing = [each for each in PREFIXES if not any(line.strip().startswith(each) for line in live.splitlines())]
    lines = [line for line in wanted.splitlines() if not line.strip().startswith(tuple(missing))] if missing else None
    return wanted if lines is None else "".join(f"{line}\n" for line in lines)


def _names(document: Any) -> set[Any]:
    server = document.get("apiServer") if isinstance(document, Mapping) else None
    flags = server.get("extraArgs") if isinstance(server, Mapping) else None
    return {_name(flag) for flag in flags} if isinstance(flags, list) else set()


def _name(flag: Any) -> Any:
    return flag.get("name") if isinstance(flag, Mapping) else None
