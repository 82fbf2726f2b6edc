"""Checks of access to a site: its console, the resource usage of its nodes, and certificates of kubelets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from ..core.untrusted import at, moment
from ..kube.kubelet_requests import KubeletHost, node_of, refusal
from .access_reading import Access, ConsoleSeen
from .reading import Unread
from .verdict import FAIL, PASS, UNKNOWN, Check, judge

WARN_DAYS = 30
"""Days before a certificate expires. Kubelets request a new one at 70 to 90 % of its lifetime; site.yml renews the
certificate of the console."""

CONSOLE = "console"
RENEWED = "run site.yml, which renews it"
PROVIDED = (
    "the site provides it, so it is not renewed; put a new one into {} (dashboard_certificate_file), its key into "
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
    """Return the checks that the site asks for, the most interesting first.

    :param nodes: names of the nodes that the cluster must have.
    :param probes: node -> findings of `service_probe`.
    :param planning: whether this is check mode; a run may then still create the console.
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
    return _check("kubelet_certificates", wrong, well)


def usage(nodes: Sequence[str], found: Sequence[str]) -> Check:
    """Check that the metrics API reports each node; a node that has just joined appears within a minute."""
    wrong = [f"the resource usage of {node} is unknown" for node in nodes if node not in found]
    return _check("usage", wrong, f"the resource usage of {len(nodes)} nodes is known", settles=True)


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
    """Return warnings about expiring certificates, pending requests, and parts left out without certificates.

    :param hosts: node -> its names and addresses in the inventory.
    :param provided: file with a certificate for the console that the site provides; empty if site.yml creates it.
    """
    found = []
    if seen.serving is False:
        found.append(
            "this cluster was created without kubernetes_serving_certificates, so metrics-server is left out; "
            "see docs/operations.md for certificates of its kubelets"
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


def _check(name: str, wrong: Sequence[str], well: str, *, settles: bool = False) -> Check:
    return Check(name, FAIL, "; ".join(wrong), settles) if wrong else Check(name, PASS, well)
