"""The checks of how a site is looked at: its console, the use of its nodes, kubelets' certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from ..core.untrusted import at, moment
from ..kube.kubelet_requests import KubeletHost, node_of, refusal
from .access_reading import Access, ConsoleSeen
from .reading import Unread
from .verdict import FAIL, PASS, UNKNOWN, Check, judge

WARN_DAYS = 30
"""Before the end of a certificate. Kubelets ask for another at 70 to 90 % of its time; the console's is renewed."""

CONSOLE = "console"
RENEWED = "run site.yml, which renews it"
PROVIDED = (
    "the site provides it, and nothing renews it; put a new one into {} (dashboard_certificate_file), its key into "
    "dashboard_key_file, and run site.yml"
)


def access_checks(
    nodes: Sequence[str],
    probes: Mapping[str, Mapping[str, object]],
    seen: Access,
    *,
    wants_console: bool,
    wants_usage: bool,
    planning: bool = False,
) -> list[Check]:
    """Those that the site asks for, in the order of a reader's interest.

    :param nodes: names of the nodes that the cluster must have.
    :param probes: node -> findings of `service_probe`.
    :param planning: in check mode, in which the console may be something that the run would make.
    """
    checks = []
    if seen.serving is True:
        checks.append(kubelet_certificates(nodes, probes))
    if wants_usage and seen.serving is not False:
        checks.append(judge("usage", seen.usage, lambda found: usage(nodes, found)))
    if wants_console:
        check = judge("console", seen.console, console)
        checks.append(Check("console", UNKNOWN, check.detail) if planning and check.result == FAIL else check)
    return checks


def kubelet_certificates(nodes: Sequence[str], probes: Mapping[str, Mapping[str, object]]) -> Check:
    """Every kubelet serves with a certificate of the cluster, for its node's name."""
    wrong, unsure = [], []
    for node in nodes:
        finding = probes.get(node, {}).get("kubelet_certificate")
        if not isinstance(finding, Mapping):
            unsure.append(f"not probed: {node}")
        elif not finding.get("ok"):
            wrong.append(f"{node}: {finding.get('error') or 'no answer'}")
    if unsure and not wrong:
        return Check("kubelet_certificates", UNKNOWN, "; ".join(unsure))
    well = f"{len(nodes)} kubelets serve with certificates of the cluster"
    return _check("kubelet_certificates", wrong, well)


def usage(nodes: Sequence[str], found: Sequence[str]) -> Check:
    """The API tells the use of every node; a node that has just joined is read within a minute."""
    wrong = [f"nothing is known of the use of {node}" for node in nodes if node not in found]
    return _check("usage", wrong, f"the use of {len(nodes)} nodes is known", settles=True)


def console(seen: ConsoleSeen) -> Check:
    return _check(
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
    """Certificates that end soon, requests that nobody has approved, and what is left out for want of certificates.

    :param hosts: node -> what the inventory says of it.
    :param provided: file with the certificate of the console that the site provides; empty where site.yml makes it.
    """
    found = []
    if seen.serving is False:
        found.append(
            "this cluster was made without kubernetes_serving_certificates: metrics-server is left out; "
            "docs/operations.md says how its kubelets get certificates"
        )
    for request in () if isinstance(seen.requests, Unread) else seen.requests:
        why = refusal(request, hosts) or "the next run of site.yml approves it"
        name, node = request["metadata"]["name"], node_of(request) or "?"
        found.append(f"the request {name} of the kubelet of {node} is pending: {why}")
    for name, ends in certificate_ends(seen, probes).items():
        if ends - now < timedelta(days=WARN_DAYS):
            # Nobody but the site's own people can have another one signed.
            remedy = PROVIDED.format(provided) if name == CONSOLE and provided else RENEWED
            found.append(f"the certificate of {name} ends on {ends:%Y-%m-%d}: {remedy}")
    return found


def certificate_ends(seen: Access, probes: Mapping[str, Mapping[str, object]]) -> dict[str, datetime]:
    """When the certificates end that the verdict has seen: of the console, and of kubelets by their nodes."""
    ends = {}
    if isinstance(seen.console, ConsoleSeen) and seen.console.ends:
        ends[CONSOLE] = seen.console.ends
    for node, probe in sorted(probes.items()):
        # A host reports it, and may report anything.
        found = moment(at(probe, "kubelet_certificate", "ends"))
        if found is not None:
            ends[f"kubelet {node}"] = found
    return ends


def _check(name: str, wrong: Sequence[str], well: str, *, settles: bool = False) -> Check:
    return Check(name, FAIL, "; ".join(wrong), settles) if wrong else Check(name, PASS, well)
