"""Read what the verdict needs about console, kubelet certificates and rights, or why it could not be read."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..drift.foreign import World, world
from ..kube.api import Api, KubeError, Object
from ..kube.kubelet_certificates import API as REQUEST_API
from ..kube.kubelet_certificates import KIND as REQUEST
from ..kube.kubelet_requests import pending
from ..kube.reads import read
from ..net import https
from ..net.certificate import certificate_end
from .certificate import trouble_of
from .reading import Unread, attempt

NAMESPACE, NAME = "trainyard-console", "console"
SECONDS = 5.0
"""Timeout of each request to the console."""


@dataclass(frozen=True)
class ConsoleSeen:
    """The state of the console.

    :param address: URL for browsers; empty if only port-forwards reach it.
    :param ends: expiry of its certificate; None if it could not be read.
    :param trouble: its fault as a clause; empty if it serves correctly.
    """

    address: str = ""
    ends: datetime | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Access:
    """The state of access to the site; each field is its value or the reason why it could not be read.

    :param serving: whether the kubelets of this cluster request certificates (`serverTLSBootstrap`).
    :param requests: their certificate requests that are pending.
    :param world: objects that grant rights or open entry points (`doors`) in the cluster.
    :param usage: names of the nodes whose resource usage the API reports.
    :param console: empty if the site has no console.
    """

    serving: bool | Unread
    requests: list[Object] | Unread
    world: World | Unread
    usage: list[str] | Unread
    console: ConsoleSeen | Unread


def nothing_known(unread: Unread) -> Access:
    return Access(unread, unread, unread, unread, unread)


def observe_access(api: Api, console: Mapping[str, Any], now: datetime) -> Access:
    """Read the state of access.

    :param console: `ca_file` (local file with the CA of its certificate; empty uses the system's CAs) and `name` (that
        the certificate must cover; empty uses its address). Empty if the site has no console.
    """
    return Access(
        serving=attempt(lambda: _serving(api)),
        requests=attempt(lambda: [each for each in api.list(REQUEST_API, REQUEST) if pending(each)]),
        world=attempt(lambda: read(api, world())),
        usage=attempt(lambda: _usage(api)),
        console=attempt(lambda: _console(api, console, now)) if console else ConsoleSeen(),
    )


def _serving(api: Api) -> bool:
    import yaml

    found = api.get("v1", "ConfigMap", "kubelet-config", "kube-system") or {}
    told = yaml.safe_load((found.get("data") or {}).get("kubelet", "")) or {}
    return bool(told.get("serverTLSBootstrap"))


def _usage(api: Api) -> list[str]:
    """Return the names of nodes with known usage; none while metrics-server does not answer."""
    try:
        found = json.loads(api.call("GET", "/apis/metrics.k8s.io/v1beta1/nodes", what="use of the nodes"))
    except KubeError as error:
        if error.status in (404, 503):
            return []
        raise
    return [str(each["metadata"]["name"]) for each in found.get("items") or []]


def _console(api: Api, wanted: Mapping[str, Any], now: datetime) -> ConsoleSeen:
    deployment = api.get("apps/v1", "Deployment", NAME, NAMESPACE)
    service = api.get("v1", "Service", NAME, NAMESPACE) or {}
    pods = api.list("v1", "Pod", NAMESPACE, labels=f"app.kubernetes.io/name={NAME}")
    secret = api.get("v1", "Secret", f"{NAME}-tls", NAMESPACE) or {}
    if deployment is None:
        return ConsoleSeen(trouble="this cluster has no console")
    host, port = _place(service, pods)
    address = f"https://{f'[{host}]' if ':' in host else host}:{port}" if port and host else ""
    if not (deployment.get("status") or {}).get("availableReplicas"):
        return ConsoleSeen(address, trouble="its pod is not ready")
    authority = str(wanted.get("ca_file") or "")
    if not address:
        pem = base64.b64decode((secret.get("data") or {}).get("tls.crt", ""))
        ends, trouble = trouble_of(pem, _bytes(authority), str(wanted.get("name") or "localhost"), now)
        return ConsoleSeen("", ends, trouble)
    return _asked(host, port, address, authority or _system(), str(wanted.get("name") or host))


def _asked(host: str, port: int, address: str, authority: str, name: str) -> ConsoleSeen:
    """Request the console like a browser."""
    try:
        ends = certificate_end(host, port, name=name, ca_path=authority, timeout=SECONDS)
        reply = https.request(host, port, name=name, path="/healthz", ca_path=authority, timeout=SECONDS)
    except https.ServiceError as error:
        return ConsoleSeen(address, trouble=f"{address}: {error}")
    wrong = "" if reply.status == 200 else f"{address} answers /healthz with status {reply.status}"
    return ConsoleSeen(address, ends, wrong)


def _place(service: Object, pods: list[Object]) -> tuple[str, int]:
    """Return the address of the node that runs the console, and its node port; 0 if it has none."""
    ports = {each.get("name"): each.get("nodePort", 0) for each in (service.get("spec") or {}).get("ports") or []}
    hosts = [
        str(pod["status"]["hostIP"])
        for pod in pods
        if (pod.get("status") or {}).get("hostIP") and not pod["metadata"].get("deletionTimestamp")
    ]
    return (hosts[0] if hosts else ""), int(ports.get("https") or 0)


def _system() -> str:
    """Return the path of the file with the CAs that this machine trusts."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.openssl_cafile


def _bytes(path: str) -> bytes:
    """Return the content of a file; empty if there is none."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""
