"""Read a cluster, and find everything in it that does not belong to the site.

Parts: the comparison of nodes with the inventory; that of kubeadm's ConfigMaps with the rendered configuration; the
whole cluster. The first finds missing nodes, unknown nodes, and nodes with a cordon or an unknown taint. The second
includes the defaults of kubeadm 1.36. The last adds unmanaged rights and entry points (`doors`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.finding import Finding
from ..core.new_clusters import as_made
from ..core.untrusted import number
from ..kube.api import Object
from ..kube.nodes import CONTROL_PLANE, CORDON
from ..kube.reads import Get, Reader, Unread, listing, must, objects, path
from .foreign import World, door_findings, right_findings, world
from .rendered import Rendered

OF_KUBERNETES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that the controller manager sets and removes by itself."""


def node_findings(nodes: Sequence[Object], wanted: Sequence[str], control_plane: Sequence[str]) -> Iterator[Finding]:
    """Yield the differences of nodes from the inventory that no role repairs.

    :param nodes: Node objects of the cluster.
    :param wanted: names of the nodes of the inventory; `control_plane` has those of its control plane.
    """
    there = {str(node["metadata"]["name"]): node for node in nodes}
    for name in wanted:
        if name not in there:
            yield Finding(f"Node {name}", "missing", "in the cluster")
    for name, node in sorted(there.items()):
        if name not in wanted:
            yield Finding(f"Node {name}", "in the cluster", "unknown to the inventory")
            continue
        yield from _kept_free(name, node, name in control_plane)


def _kept_free(name: str, node: Object, of_control_plane: bool) -> Iterator[Finding]:
    spec = node.get("spec") or {}
    if spec.get("unschedulable"):
        ours = CORDON in (node["metadata"].get("annotations") or {})
        who = "by a drain of trainyard that did not end" if ours else "by hand"
        yield Finding(f"cordon of node {name}", f"cordoned {who}", "schedulable")
    for taint in spec.get("taints") or []:
        key, effect = str(taint.get("key")), str(taint.get("effect"))
        if key.startswith(OF_KUBERNETES) or (of_control_plane and key == CONTROL_PLANE):
            continue
        yield Finding(f"taint {key}:{effect} of node {name}", str(taint.get("value") or "set"), "no taint")


MAPS: Mapping[str, tuple[str, str]] = {
    "ClusterConfiguration": ("kubeadm-config", "ClusterConfiguration"),
    "KubeletConfiguration": ("kubelet-config", "kubelet"),
}
"""Kind of a document of the kubeadm configuration -> the ConfigMap of kube-system that holds it, and its key there."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "ClusterConfiguration": {
        "caCertificateValidityPeriod": "87600h0m0s",
        "certificateValidityPeriod": "8760h0m0s",
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": "kubernetes",
        "encryptionAlgorithm": "RSA-2048",
        "imageRepository": "registry.k8s.io",
    },
    "KubeletConfiguration": {
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
    },
}
"""The values that `kubeadm init --dry-run` adds by itself. Its other additions are empty or zero."""

ON_BY_DEFAULT = ("failCgroupV1", "failSwapOn", "serializeImagePulls")
"""Fields that default to true in the kubelet, so that false differs from a missing field."""

ZERO: tuple[Any, ...] = (None, "", 0, "0", "0s", {}, [])
DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|ns))+")
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
MISSING = "missing"


def settings_findings(kind: str, live: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield one finding for each field that differs.

    :param kind: of the document, a key of MAPS.
    :param live: the settings in the cluster; None if its ConfigMap is missing.
    :param wanted: the document that the inventory renders.
    """
    name = f"ConfigMap kube-system/{MAPS[kind][0]}"
    if live is None:
        yield Finding(name, MISSING, "as kubeadm has written it")
        return
    expected = _filled(as_made(wanted, live), DEFAULTS[kind])
    for place, there, should in _differences("", live, expected):
        yield Finding(f"{name} {place}", _shown(there), _shown(should))


def _filled(wanted: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted settings, completed by the defaults."""
    filled = dict(defaults)
    for key, value in wanted.items():
        default = defaults.get(key)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            filled[key] = _filled(value, default)
        elif default is None or value not in (None, ""):
            filled[key] = value
    return filled


def _differences(path: str, live: Any, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
    if not (isinstance(live, Mapping) or isinstance(wanted, Mapping)):
        if _canonical(live) != _canonical(wanted):
            yield path, live, wanted
        return
    live, wanted = live or {}, wanted or {}
    if not (isinstance(live, Mapping) and isinstance(wanted, Mapping)):
        yield path, live, wanted
        return
    for key in sorted({*live, *wanted}):
        there, should = live.get(key), wanted.get(key)
        if not (_is_zero(key, there) and _is_zero(key, should)):
            yield from _differences(f"{path}.{key}" if path else key, there, should)


def _is_zero(key: str, value: Any) -> bool:
    """Return whether a value means the same as a missing field."""
    if isinstance(value, bool):
        return not value and key not in ON_BY_DEFAULT
    if isinstance(value, Mapping):
        return all(_is_zero(name, each) for name, each in value.items())
    return value in ZERO


def _canonical(value: Any) -> str:
    """Return a canonical text of a value. kubeadm reformats durations (90m: 1h30m0s) and reorders flags."""
    if isinstance(value, list):
        return json.dumps(sorted(map(_canonical, value)) if all(isinstance(v, Mapping) for v in value) else value)
    if isinstance(value, str) and DURATION.fullmatch(value):
        parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)", value)
        return f"{sum((number(count) or 0.0) * UNITS[unit] for count, unit in parts)} s"
    return json.dumps(value, sort_keys=True) if isinstance(value, (Mapping, bool, type(None))) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return MISSING
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Snapshot:
    """The state of the API server.

    :param nodes: Node objects.
    :param world: objects that may be a right or a door.
    :param settings: kind of kubeadm's documents -> the text in its ConfigMap; None if it is missing.
    """

    nodes: Sequence[Object] = ()
    world: World = field(default_factory=World)
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """The intended state of a site.

    :param nodes: names of its nodes; `control_plane` has those of its control plane.
    :param documents: of the kubeadm configuration that the inventory renders; empty to skip the comparison.
    :param system: namespaces of the system.
    :param rendered: the record of rendered objects; None to skip rights and doors.
    """

    nodes: Sequence[str]
    control_plane: Sequence[str]
    documents: Sequence[Mapping[str, Any]] = ()
    system: Sequence[str] = ("kube-system",)
    rendered: Rendered | None = None


def snapshot() -> Reader[Snapshot]:
    """Read the cluster.

    :raises KubeError: something cannot be read.
    """
    maps = [Get(path("v1", "configmaps", "kube-system", name)) for name, _ in MAPS.values()]
    nodes, *answers = yield (listing("v1", "nodes"), *maps)
    texts = {kind: _text(answer, key) for (kind, (_, key)), answer in zip(MAPS.items(), answers, strict=True)}
    return Snapshot(must(objects(nodes)), (yield from world()), texts)


def _text(answer: Any, key: str) -> str | None:
    if isinstance(answer, Unread) and answer.absent:
        return None
    text = (must(answer).get("data") or {}).get(key)
    return None if text is None else str(text)


def cluster_findings(seen: Snapshot, site: Site) -> list[Finding]:
    """Return all differences from the site that no role repairs, including objects that do not belong to it."""
    found = list(node_findings(seen.nodes, site.nodes, site.control_plane))
    if site.rendered is not None:
        found += right_findings(seen.world, site.rendered, site.system)
        found += door_findings(seen.world, site.rendered, site.control_plane)
    for document in site.documents:
        kind = str(document.get("kind"))
        if kind in MAPS:
            found += settings_findings(kind, _parsed(seen.settings.get(kind)), document)
    return found


def _parsed(text: str | None) -> Mapping[str, Any] | None:
    """Return the settings in a ConfigMap; None without valid YAML."""
    import yaml

    try:
        found = yaml.safe_load(text) if text is not None else None
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, Mapping) else None
