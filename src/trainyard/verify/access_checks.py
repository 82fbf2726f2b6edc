"""Checks of access to a site: console, resource usage, kubelet certificates, rights and entry points (`doors`).

Parts: the reading; the checks of console, resource usage of nodes, and kubelet certificates; the checks of rights and
doors. The reading returns the state of each subject, or why it could not be read. The last part finds unmanaged rights
and doors, except those that the site allows.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ..core.finding import Finding, accepted_of, allowed_by
from ..core.untrusted import at, items, moment
from ..kube.api import Api, KubeError, Object
from ..kube.certificate_requests import API as REQUEST_API
from ..kube.certificate_requests import KIND as REQUEST
from ..kube.certificate_requests import KubeletHost, node_of, pending, refusal
from ..kube.reads import read
from ..net import https
from ..net.https import certificate_end
from ..unmanaged.foreign import World, door_findings, right_findings, world
from ..unmanaged.rendered import Rendered, missing_parts
from ..unmanaged.rights import is_static
from .certificate import trouble_of
from .observation import Unread, attempt
from .verdict import FAIL, PASS, UNKNOWN, Check, judge, of_faults

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
    config = yaml.safe_load((found.get("data") or {}).get("kubelet", "")) or {}
    return bool(config.get("serverTLSBootstrap"))


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


WARN_DAYS = 30
"""Days before a certificate expires. Kubelets request a new one at 70 to 90 % of its lifetime; site.yml renews the
certificate of the console."""

CONSOLE = "console"
RENEWED = "run site.yml, which renews it"
PROVIDED = (
    "the site provides it, so it is not renewed; put a new one into {} (dashboard_certificate_file), its key into "
    "dashboard_key_file, and run site.yml"
)


def kubelet_certificates(nodes: Sequence[str], probes: Mapping[str, Mapping[str, object]]) -> Check:
    """Check that each kubelet serves with a certificate that the cluster issued for its node."""
    wrong, unsure = [], []
    for node in nodes:
        finding = probes.get(node, {}).get("kubelet_certificate")
        if not isinstance(finding, Mapping):
            unsure.append(f"not probed: {node}")
        elif not finding.get("ok"):
            wrong.append(f"{node}: {finding.get('error') or 'no answer'}")
    if unsure and not wrong:
        return Check("kubelet_certificates", UNKNOWN, "; ".join(unsure))
    well = f"{len(nodes)} kubelets serve with certificates of the cluster's CA"
    return of_faults("kubelet_certificates", wrong, well)


def usage(nodes: Sequence[str], found: Sequence[str]) -> Check:
    """Check that the metrics API reports each node; a node that has just joined appears within a minute."""
    wrong = [f"the resource usage of {node} is unknown" for node in nodes if node not in found]
    return of_faults("usage", wrong, f"the resource usage of {len(nodes)} nodes is known", settles=True)


def console(seen: ConsoleSeen) -> Check:
    return of_faults(
        "console", [seen.trouble] if seen.trouble else [], "it answers over a valid certificate", settles=True
    )


def access_warnings(
    seen: Access,
    probes: Mapping[str, Mapping[str, object]],
    hosts: Mapping[str, KubeletHost],
    now: datetime,
    *,
    provided: str = "",
) -> list[str]:
    """Return warnings about expiring certificates, pending requests, and parts left out without certificates.

    :param hosts: node -> its names and addresses in the inventory.
    :param provided: file with a certificate for the console that the site provides; empty if site.yml creates it.
    """
    found = []
    if seen.serving is False:
        found.append(
            "this cluster was created without kubernetes_serving_certificates, so metrics-server is left out; "
            "see docs/tasks/operations.md for certificates of its kubelets"
        )
    for request in () if isinstance(seen.requests, Unread) else seen.requests:
        why = refusal(request, hosts) or "the next run of site.yml approves it"
        name, node = request["metadata"]["name"], node_of(request) or "?"
        found.append(f"the request {name} of the kubelet of {node} is pending: {why}")
    for name, ends in certificate_ends(seen, probes).items():
        if ends - now < timedelta(days=WARN_DAYS):
            # Only the site's own operators can obtain another signed certificate.
            remedy = PROVIDED.format(provided) if name == CONSOLE and provided else RENEWED
            found.append(f"the certificate of {name} expires on {ends:%Y-%m-%d}: {remedy}")
    return found


def certificate_ends(seen: Access, probes: Mapping[str, Mapping[str, object]]) -> dict[str, datetime]:
    """Return when the certificates of the console and of each node's kubelet expire."""
    ends = {}
    if isinstance(seen.console, ConsoleSeen) and seen.console.ends:
        ends[CONSOLE] = seen.console.ends
    for node, probe in sorted(probes.items()):
        # The value comes from a host, which may report anything.
        found = moment(at(probe, "kubelet_certificate", "ends"))
        if found is not None:
            ends[f"kubelet {node}"] = found
    return ends


WELL = {
    "rights": "only the site and Kubernetes grant rights over the cluster",
    "doors": "no Service, pod, webhook or API opens more than the site renders",
}
FLAG = "--kubelet-certificate-authority="
UNVERIFIED = (
    "the API server in {} does not verify kubelets, so logs and commands can be intercepted between the nodes: "
    "add kubelet-certificate-authority, see 'Change the control plane' in docs/tasks/operations.md"
)


@dataclass(frozen=True)
class Judge:
    """The judge of rights and entry points (`doors`).

    :param rendered: record of the objects that runs of this controller render.
    :param recorded: parts that it must contain; if one is missing, the checks are unknown.
    :param accepted: exceptions of the site, in the form of `accepted_of`.
    :param control_plane: names of the control plane nodes.
    :param system: system namespaces.
    """

    rendered: Rendered
    recorded: Sequence[str] = ()
    accepted: Sequence[Any] = ()
    control_plane: Sequence[str] = ()
    system: Sequence[str] = ()

    def check(self, name: str, seen: World | Unread) -> Check:
        """Check rights or entry points.

        :param name: `rights` or `doors`.
        """
        return judge(name, seen, self._rule(name, self._looks()[name]))

    def allowed(self, seen: World | Unread) -> list[dict[str, str]]:
        """Return the findings that the site allows, each with its reason, for the receipt."""
        if isinstance(seen, Unread) or missing_parts(self.rendered, self.recorded):
            return []
        accepted = accepted_of(self.accepted)
        found = [each for look in self._looks().values() for each in look(seen)]
        pairs = [(each, allowed_by(each, accepted)) for each in found]
        return [{"name": each.subject, "found": each.before, "reason": entry.reason} for each, entry in pairs if entry]

    def _looks(self) -> Mapping[str, Callable[[World], Iterable[Finding]]]:
        return {
            "rights": lambda seen: right_findings(seen, self.rendered, self.system),
            "doors": lambda seen: door_findings(seen, self.rendered, self.control_plane),
        }

    def _rule(self, name: str, look: Callable[[World], Iterable[Finding]]) -> Callable[[World], Check]:
        def rule(seen: World) -> Check:
            if missing := missing_parts(self.rendered, self.recorded):
                lacks = f"this controller has no record of the rendered objects of {', '.join(missing)}"
                return Check(name, UNKNOWN, f"{lacks}: run site.yml, which writes it")
            accepted = accepted_of(self.accepted)
            wrong = [f"{each.subject}: {each.before}" for each in look(seen) if allowed_by(each, accepted) is None]
            return Check(name, FAIL, "; ".join(wrong)) if wrong else Check(name, PASS, WELL[name])

        return rule

    def warnings(self, seen: World | Unread) -> list[str]:
        """Return one warning that names each API server that does not verify kubelets."""
        if isinstance(seen, Unread):
            return []
        servers = [
            str(each["metadata"]["name"])
            for each in seen.objects
            if is_static(each, self.control_plane)
            and each["metadata"]["name"].startswith("kube-apiserver-")
            and not _verifies(each)
        ]
        return [UNVERIFIED.format(", ".join(sorted(servers)))] if servers else []


def _verifies(pod: Mapping[str, Any]) -> bool:
    container = at(pod, "spec", "containers", 0)
    words = [*items(at(container, "command")), *items(at(container, "args"))]
    return any(str(each).startswith(FLAG) and str(each) != FLAG for each in words)
