"""Compare kubeadm's ConfigMaps with the rendered configuration, including the defaults of kubeadm 1.36."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.finding import Finding
from ..core.new_clusters import as_made
from ..core.untrusted import number

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
    for path, there, should in _differences("", live, expected):
        yield Finding(f"{name} {path}", _text(there), _text(should))


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


def _text(value: Any) -> str:
    if value is None:
        return MISSING
    return value if isinstance(value, str) else json.dumps(value)
