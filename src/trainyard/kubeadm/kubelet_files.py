"""Files that kubeadm and the kubelet keep on a host: the kubelet's configuration, and file modes.

The code compares a node's kubelet configuration with the cluster's as text, so that hosts need no YAML parser. kubeadm
writes both with sorted fields, so that only host-specific fields differ.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core import files
from ..core.finding import Finding
from ..core.plan import Plan, Step
from ..host import resolver, started_with
from ..host.units import is_newer, properties_of, start
from . import kubeadm_program as adm
from .node_api import get_json

PATH = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
NAME = "ConfigMap kube-system/kubelet-config"
UNIT = "kubelet.service"
RESTART_SECONDS = 120.0
WRITERS = ("kubeadm", "trainyard")
"""Field managers whose ConfigMap a node follows. Changes by others need an operator first.

A client chooses its manager name freely, so the name alone is not trusted: `opens` also checks the text.
"""
CLOSED = {
    "authentication": r"authentication:\n  anonymous:\n    enabled: false\b",
    "authorization": r"authorization:\n  mode: Webhook\b",
    "readOnlyPort": r"readOnlyPort: 0\s*\Z",
    "staticPodPath": r"staticPodPath: /etc/kubernetes/manifests\s*\Z",
    "staticPodURL": r'staticPodURL: ""\s*\Z',
    "staticPodURLHeader": r"staticPodURLHeader: null\s*\Z",
}
"""Fields that could let a kubelet accept others than the API server -> their text as kubeadm 1.36 writes it."""

AS_A_FLAG = 'containerRuntimeEndpoint: ""'


@dataclass(frozen=True)
class KubeletSeen:
    """The kubelet configurations of a node and its cluster.

    :param text: the node's configuration; empty if there is none.
    :param wanted: the cluster's configuration; empty if it cannot be read.
    :param writer: field manager that last wrote the cluster's configuration; empty if unknown.
    :param stale: the kubelet runs, and its configuration file is newer than its process.
    """

    text: str = ""
    wanted: str = ""
    writer: str = ""
    stale: bool = False


def observe(host: adm.Host) -> KubeletSeen:
    """Read both configurations; changes nothing."""
    if not (host.has("kubelet.conf") and host.has_kubelet_config() and adm.installed()):
        return KubeletSeen()
    with open(host.kubelet_config, encoding="utf-8", errors="surrogateescape") as stream:
        text = stream.read()
    found = get_json(host.file("kubelet.conf"), PATH) or {}
    wanted = str((found.get("data") or {}).get("kubelet", ""))
    return KubeletSeen(text, wanted, writer_of(found), is_stale(host.kubelet_config))


def writer_of(config_map: Mapping[str, Any]) -> str:
    """Return the field manager that last wrote the kubelets' configuration, from the ConfigMap's managedFields."""
    for entry in (config_map.get("metadata") or {}).get("managedFields") or []:
        if "f:kubelet" in ((entry.get("fieldsV1") or {}).get("f:data") or {}):
            return str(entry.get("manager", ""))
    return ""


def is_stale(path: str) -> bool:
    """Return whether the kubelet runs and started before the file got its present text.

    A restart by this project records the file, which is then compared. For other starts, the modification time counts,
    not the inode change time, because the file's mode is set after the kubelet has started.
    """
    seen = properties_of(UNIT, ("ActiveState", "ExecMainStartTimestampMonotonic", "InvocationID"))
    if seen.get("ActiveState") != "active":
        return False
    files = started_with.known(UNIT, seen.get("InvocationID", ""))
    if path in files:
        return bool(started_with.changed([path], files))
    return is_newer(os.stat(path).st_mtime, int(seen.get("ExecMainStartTimestampMonotonic") or 0) / 1e6)


def wanted_text(cluster: str, own: str, cri_socket: str, resolv_conf: str) -> str:
    """Return the cluster's configuration with the host-specific fields.

    :param own: the host's present text, from which only these fields are used.
    :param resolv_conf: resolver file for pods of this node. The cluster's is that of the host that created it.
    """
    fields, there = _fields(cluster), _fields(own)
    # kubeadm before 1.34 passes the socket to the kubelet as a flag, and leaves the cluster's field unchanged.
    if "containerRuntimeEndpoint" in fields and there.get("containerRuntimeEndpoint") != AS_A_FLAG:
        fields["containerRuntimeEndpoint"] = f"containerRuntimeEndpoint: {cri_socket}"
    fields["resolvConf"] = f"resolvConf: {resolv_conf}"
    if "resolvConf" not in there and resolv_conf == resolver.DEFAULT:
        # Without the field, the kubelet uses the same file.
        del fields["resolvConf"]
    return "".join(f"{fields[name]}\n" for name in sorted(fields))


def make_plan(
    seen: KubeletSeen, cri_socket: str, host: adm.Host, resolv_conf: str = resolver.DEFAULT
) -> tuple[Plan, list[Finding]]:
    """Plan to restore the node's configuration; return findings if an operator must act first.

    :param resolv_conf: resolver file for pods of this node.
    """
    if not seen.text or not seen.wanted:
        return Plan(), []
    wanted = wanted_text(seen.wanted, seen.text, cri_socket, resolv_conf)
    differs = _fields(seen.text) != _fields(wanted)
    if (differs or seen.stale) and seen.writer and seen.writer not in WRITERS:
        return Plan(), [Finding(NAME, f"written by {seen.writer}", "written by kubeadm; this node ignores the change")]
    if differs and (open_fields := opens(seen.wanted)):
        why = f"its {' and '.join(open_fields)} would let others than the API server control this node"
        return Plan(), [Finding(NAME, why, "as kubeadm writes it; this node ignores the change")]
    restart = Step(f"Restart {UNIT}", partial(start, UNIT, "restart", [host.kubelet_config], RESTART_SECONDS))
    if differs:
        write = Step(f"Write {host.kubelet_config}", partial(files.write, host.kubelet_config, wanted, 0o600))
        before, after = seen.text.splitlines(), wanted.splitlines()
        return Plan([write, restart], {host.kubelet_config: before}, {host.kubelet_config: after}), []
    if seen.stale:
        return Plan([restart], {UNIT: "older than its configuration"}, {UNIT: "restarted"}), []
    return Plan(), []


def opens(text: str) -> list[str]:
    """Return the fields that would let a kubelet accept others than the API server; empty for kubeadm's own text."""
    fields = _fields(text)
    return sorted(name for name, closed in CLOSED.items() if name in fields and not re.match(closed, fields[name]))


def _fields(text: str) -> dict[str, str]:
    """Return the top-level fields -> their lines, with the quotation marks of the runtime endpoint removed."""
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


OWNERS_ALONE = 0o600
READ_BY_ALL = 0o644
"""Mode of a certificate, which is not secret but must not be writable by others."""

KUBELET_PKI = "/var/lib/kubelet/pki"


def wanted_modes(host: adm.Host, kubelet_pki: str = KUBELET_PKI) -> list[tuple[str, int]]:
    """Return path patterns with the widest permitted mode, the one that kubeadm and the kubelet write with."""
    return [
        (host.file("*.conf"), OWNERS_ALONE),
        (host.file("manifests/*.yaml"), OWNERS_ALONE),
        (host.file("pki/*.key"), OWNERS_ALONE),
        (host.file("pki/etcd/*.key"), OWNERS_ALONE),
        (host.file("pki/*.crt"), READ_BY_ALL),
        (host.file("pki/etcd/*.crt"), READ_BY_ALL),
        (os.path.join(kubelet_pki, "*.key"), OWNERS_ALONE),
        (os.path.join(kubelet_pki, "*.pem"), OWNERS_ALONE),
    ]


def plan_modes(wanted: Sequence[tuple[str, int]], owner: int = 0) -> Plan:
    """Plan to narrow modes that are too wide and to correct owners; narrower modes are kept.

    :param wanted: pattern and widest mode; links are skipped.
    :param owner: user ID of the owner.
    """
    steps: list[Step] = []
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for pattern, most in wanted:
        for path in sorted(glob.glob(pattern)):
            seen = os.lstat(path)
            mode = stat.S_IMODE(seen.st_mode)
            if stat.S_ISLNK(seen.st_mode) or (not mode & ~most and seen.st_uid == owner):
                continue
            subject = f"mode of {path}"
            before[subject], after[subject] = _told(mode, seen.st_uid, owner), _told(mode & most, owner, owner)
            steps.append(Step(f"Restrict owner and mode of {path}", partial(_narrow, path, mode & most, owner)))
    return Plan(steps, before, after)


def _told(mode: int, uid: int, owner: int) -> str:
    return f"{mode:04o}" + (f" of user {uid}" if uid != owner else "")


def _narrow(path: str, mode: int, owner: int) -> None:
    os.chmod(path, mode)
    os.chown(path, owner, -1)
