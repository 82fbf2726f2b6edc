"""What the verdict looks at of console, kubelets' certificates and rights. Reads only; what cannot be read says why."""

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
"""For each question to the console."""


@dataclass(frozen=True)
class ConsoleSeen:
    """What there is of the console.

    :param address: where browsers reach it; empty where only port-forwards do.
    :param ends: of its certificate; None where that could not be read.
    :param trouble: why it does not serve as it should, as a clause; empty when it does.
    """

    address: str = ""
    ends: datetime | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Access:
    """How the site is looked at; each field is the value or why it could not be read.

    :param serving: whether the kubelets of this cluster ask for certificates (`serverTLSBootstrap`).
    :param requests: theirs that nobody has decided about.
    :param world: what may be a right or a door in the cluster.
    :param usage: names of the nodes whose use the API tells.
    :param console: None where nobody asks for it.
    """

    serving: bool | Unread
    requests: list[Object] | Unread
    world: World | Unread
    usage: list[str] | Unread
    console: ConsoleSeen | Unread


def nothing_known(unread: Unread) -> Access:
    return Access(unread, unread, unread, unread, unread)


def observe_access(api: Api, console: Mapping[str, Any], now: datetime) -> Access:
    """Read everything.

    :param console: `ca_file` (authority of its certificate, a file here; empty for the system's) and `name` (for which
        it has to be; empty for the address at which it is asked). Empty when the site's console is not asked for.
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
    """Names of nodes; none while metrics-server does not answer."""
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
        return ConsoleSeen(trouble="there is none in this cluster")
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
    """The console as a browser finds it."""
    try:
        ends = certificate_end(host, port, name=name, ca_path=authority, timeout=SECONDS)
        reply = https.request(host, port, name=name, path="/healthz", ca_path=authority, timeout=SECONDS)
    except https.ServiceError as error:
        return ConsoleSeen(address, trouble=f"{address}: {error}")
    wrong = "" if reply.status == 200 else f"{address} answers /healthz with status {reply.status}"
    return ConsoleSeen(address, ends, wrong)


def _place(service: Object, pods: list[Object]) -> tuple[str, int]:
    """Address of the node on which it runs, and its port there; 0 without one."""
    ports = {each.get("name"): each.get("nodePort", 0) for each in (service.get("spec") or {}).get("ports") or []}
    hosts = [
        str(pod["status"]["hostIP"])
        for pod in pods
        if (pod.get("status") or {}).get("hostIP") and not pod["metadata"].get("deletionTimestamp")
    ]
    return (hosts[0] if hosts else ""), int(ports.get("https") or 0)


def _system() -> str:
    """File with the authorities that this machine trusts."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.openssl_cafile


def _bytes(path: str) -> bytes:
    """A file's content; empty where there is none."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""
