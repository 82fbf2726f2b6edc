"""A node's kubelet configuration against the cluster's, by its text: hosts need no YAML parser.

kubeadm writes both with sorted fields, so that they are the same text but for the fields that are the host's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core import files
from ..core.finding import Finding
from ..core.plan import Plan, Step
from ..host import started_with
from ..host.units import is_newer, properties_of, start
from . import program as adm
from .api import get_json

PATH = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
NAME = "ConfigMap kube-system/kubelet-config"
UNIT = "kubelet.service"
RESTART_SECONDS = 120.0
WRITERS = ("kubeadm", "trainyard")
"""Field managers whose text of the ConfigMap a node may follow; anybody else's is for a person first.

A client chooses its name itself, so the name alone opens nothing: `opens` looks at the text.
"""
CLOSED = {
    "authentication": r"authentication:\n  anonymous:\n    enabled: false\b",
    "authorization": r"authorization:\n  mode: Webhook\b",
    "readOnlyPort": r"readOnlyPort: 0\s*\Z",
    "staticPodPath": r"staticPodPath: /etc/kubernetes/manifests\s*\Z",
    "staticPodURL": r'staticPodURL: ""\s*\Z',
    "staticPodURLHeader": r"staticPodURLHeader: null\s*\Z",
}
"""Fields by which a kubelet may obey others than the API server -> their text as kubeadm 1.36 writes it."""

AS_A_FLAG = 'containerRuntimeEndpoint: ""'
SYSTEMD_RESOLVED = "resolvConf: /run/systemd/resolve/resolv.conf"
"""What kubeadm adds on a host where systemd-resolved runs."""


@dataclass(frozen=True)
class KubeletSeen:
    """What a node and its cluster have.

    :param text: the node's configuration; empty where there is none.
    :param wanted: the cluster's; empty where it cannot be asked.
    :param writer: field manager that wrote the cluster's last; empty where nobody remembers.
    :param stale: the kubelet runs, and its configuration is newer than its process.
    """

    text: str = ""
    wanted: str = ""
    writer: str = ""
    stale: bool = False


def observe(host: adm.Host) -> KubeletSeen:
    """Read both; changes nothing."""
    if not (host.has("kubelet.conf") and host.has_kubelet_config() and adm.installed()):
        return KubeletSeen()
    with open(host.kubelet_config, encoding="utf-8", errors="surrogateescape") as stream:
        text = stream.read()
    found = get_json(host.file("kubelet.conf"), PATH) or {}
    wanted = str((found.get("data") or {}).get("kubelet", ""))
    return KubeletSeen(text, wanted, writer_of(found), is_stale(host.kubelet_config))


def writer_of(config_map: Mapping[str, Any]) -> str:
    """The field manager that wrote the kubelets' configuration last, as the API server remembers."""
    for entry in (config_map.get("metadata") or {}).get("managedFields") or []:
        if "f:kubelet" in ((entry.get("fieldsV1") or {}).get("f:data") or {}):
            return str(entry.get("manager", ""))
    return ""


def is_stale(path: str) -> bool:
    """Whether the kubelet runs and started before the file got its present text.

    By what a restart of ours has recorded. Any other start is judged by the time of the text, not of the inode: the
    file's mode is set after the kubelet has started.
    """
    seen = properties_of(UNIT, ("ActiveState", "ExecMainStartTimestampMonotonic", "InvocationID"))
    if seen.get("ActiveState") != "active":
        return False
    files = started_with.known(UNIT, seen.get("InvocationID", ""))
    if path in files:
        return bool(started_with.changed([path], files))
    return is_newer(os.stat(path).st_mtime, int(seen.get("ExecMainStartTimestampMonotonic") or 0) / 1e6)


def wanted_text(cluster: str, own: str, cri_socket: str) -> str:
    """The cluster's configuration with the fields that are the host's own.

    :param own: the host's present text, of which only these fields are looked at.
    """
    fields, there = _fields(cluster), _fields(own)
    # A kubeadm older than 1.34 gives the socket to the kubelet as a flag, and leaves the field as the cluster has it.
    if "containerRuntimeEndpoint" in fields and there.get("containerRuntimeEndpoint") != AS_A_FLAG:
        fields["containerRuntimeEndpoint"] = f"containerRuntimeEndpoint: {cri_socket}"
    if "resolvConf" not in fields and there.get("resolvConf") == SYSTEMD_RESOLVED:
        fields["resolvConf"] = SYSTEMD_RESOLVED
    return "".join(f"{fields[name]}\n" for name in sorted(fields))


def make_plan(seen: KubeletSeen, cri_socket: str, host: adm.Host) -> tuple[Plan, list[Finding]]:
    """What gives the node its configuration back, and what is for a person."""
    if not seen.text or not seen.wanted:
        return Plan(), []
    wanted = wanted_text(seen.wanted, seen.text, cri_socket)
    differs = _fields(seen.text) != _fields(wanted)
    if (differs or seen.stale) and seen.writer and seen.writer not in WRITERS:
        return Plan(), [Finding(NAME, f"written by {seen.writer}", "written by kubeadm; this node does not follow it")]
    if differs and (open_fields := opens(seen.wanted)):
        why = f"its {' and '.join(open_fields)} would let others than the API server rule this node"
        return Plan(), [Finding(NAME, why, "as kubeadm writes it; this node does not follow it")]
    restart = Step(f"Restart {UNIT}", partial(start, UNIT, "restart", [host.kubelet_config], RESTART_SECONDS))
    if differs:
        write = Step(f"Write {host.kubelet_config}", partial(files.write, host.kubelet_config, wanted, 0o600))
        before, after = seen.text.splitlines(), wanted.splitlines()
        return Plan([write, restart], {host.kubelet_config: before}, {host.kubelet_config: after}), []
    if seen.stale:
        return Plan([restart], {UNIT: "older than its configuration"}, {UNIT: "restarted"}), []
    return Plan(), []


def opens(text: str) -> list[str]:
    """Fields of a configuration by which a kubelet would obey others than the API server; none for one of kubeadm."""
    fields = _fields(text)
    return sorted(name for name, closed in CLOSED.items() if name in fields and not re.match(closed, fields[name]))


def _fields(text: str) -> dict[str, str]:
    """Fields of the highest level -> their lines, quotation marks of a plain value taken away."""
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        found = re.match(r"([A-Za-z]\w*):", line)
        if found:
            name = found[1]
            fields[name] = re.sub(r'^(\w+: )"([^" ]+)"$', r"\1\2", line) if name == "containerRuntimeEndpoint" else line
        elif line.strip() and line.strip() != "---":
            fields[name] = f"{fields[name]}\n{line}" if name in fields else line
    return fields
