"""Approve kubelets' requests for serving certificates, and wait until the kubelets use them.

Parts: the check of requests against the hosts of the inventory, without cluster calls; the approvals and waits.
Kubernetes' own signer does not check the names in an approved request, so the check covers all of them.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core.plan import Change, Plan, Step
from ..core.waiter import CLOCK, Clock, wait_until
from .api import Api, KubeError, Object
from .apply import retry

SIGNER = "kubernetes.io/kubelet-serving"
GROUPS = {"system:nodes", "system:authenticated"}
USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})
"""The second set is for RSA keys. Source: kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests
"""

EXTENSIONS, ALTERNATIVE_NAMES = "1.2.840.113549.1.9.14", "2.5.29.17"
"""Object identifiers of the only attribute and the only extension of a kubelet's request (RFC 2985, RFC 5280)."""

USER = "system:node:"


@dataclass(frozen=True)
class KubeletHost:
    """The names and addresses that a host's kubelet may request in its certificate.

    :param names: DNS names, in lower case.
    :param addresses: IP addresses in canonical form.
    """

    names: frozenset[str]
    addresses: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str], addresses: Iterable[str]) -> KubeletHost:
        """Normalise names and addresses. Invalid addresses are dropped, so that no request matches them."""
        known = [found for each in addresses if (found := _address(each))]
        return cls(frozenset(name.lower() for name in names), frozenset(known))


@dataclass(frozen=True)
class Asked:
    """The content of a PKCS #10 request.

    :param subject: attributes as (name, value), in order.
    :param names: DNS names; `addresses` are IP addresses.
    :param others: kinds of alternative names that are neither DNS names nor addresses.
    :param foreign: object identifiers of attributes and extensions that kubelets do not use. The signer might read
        names from a different one than this code. For example, libraries differ if there are several extension lists.
    :param signed: whether the request is signed with its own key.
    """

    subject: Sequence[tuple[str, str]]
    names: Sequence[str]
    addresses: Sequence[str]
    others: Sequence[str]
    foreign: Sequence[str]
    signed: bool


def refusal(request: Object, hosts: Mapping[str, KubeletHost]) -> str:
    """Return why a request stays pending, as a clause; empty if it matches a host of the inventory.

    :param request: CertificateSigningRequest from the API server, which sets user and groups itself.
    :param hosts: node name -> names and addresses of the host in the inventory.
    """
    spec = request["spec"]
    if spec.get("signerName") != SIGNER:
        return f"it is for the signer {spec.get('signerName')}"
    user = str(spec.get("username", ""))
    if not user.startswith(USER) or user.removeprefix(USER) not in hosts:
        return f"its user {user or '(none)'} is not a host of the inventory"
    node = user.removeprefix(USER)
    if set(spec.get("groups") or ()) != GROUPS:
        return f"its user is in the groups {_list(spec.get('groups'))}"
    if set(spec.get("usages") or ()) not in USAGES:
        return f"it is for the usages {_list(spec.get('usages'))}"
    try:
        asked = read_request(str(spec.get("request", "")))
    except ValueError as error:
        return f"it cannot be read: {error}"
    return _wrong_names(node, asked, hosts[node])


def _wrong_names(node: str, asked: Asked, host: KubeletHost) -> str:
    if not asked.signed:
        return "it is not signed with its own key"
    if sorted(asked.subject) != [("commonName", f"{USER}{node}"), ("organizationName", "system:nodes")]:
        return f"its subject is {_list(f'{name}={value}' for name, value in asked.subject)}"
    if asked.foreign:
        return f"it has attributes or extensions that no kubelet requests: {_list(asked.foreign)}"
    if asked.others:
        return f"it asks for names of the kinds {_list(asked.others)}"
    if not asked.names and not asked.addresses:
        return "it asks for no name and no address"
    foreign = [name for name in asked.names if name.lower() not in host.names]
    foreign += [address for address in asked.addresses if _address(address) not in host.addresses]
    return f"it asks for {_list(foreign)}, which the inventory does not give {node}" if foreign else ""


def pending(request: Object) -> bool:
    """Return whether a request is for a kubelet's serving certificate and not decided yet."""
    decided = (request.get("status") or {}).get("conditions")
    return request["spec"].get("signerName") == SIGNER and not decided


def node_of(request: Object) -> str:
    """Return the node whose kubelet made the request; empty if the user is not a kubelet."""
    user = str(request["spec"].get("username", ""))
    return user.removeprefix(USER) if user.startswith(USER) else ""


def read_request(encoded: str) -> Asked:
    """Parse the content of a request.

    :param encoded: its PEM in base64, as in `spec.request`.
    :raises ValueError: it is not a PKCS #10 request.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        found = x509.load_pem_x509_csr(base64.b64decode(encoded, validate=True))
        subject = [(str(each.oid._name), str(each.value)) for each in found.subject]
        signed = bool(found.is_signature_valid)
        attributes = [each.oid.dotted_string for each in found.attributes]
        extensions = list(found.extensions)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error).rstrip(".") or "not a PKCS #10 request") from error
    kinds = [each.oid.dotted_string for each in extensions]
    foreign = [each for each in kinds if each != ALTERNATIVE_NAMES]
    foreign += [each for each in attributes if each != EXTENSIONS or attributes.count(each) > 1]
    alternative: list[Any] = [each.value for each in extensions if each.oid.dotted_string == ALTERNATIVE_NAMES]
    names, addresses, others = [], [], []
    for each in (name for extension in alternative for name in extension):
        if isinstance(each, x509.DNSName):
            names.append(each.value)
        elif isinstance(each, x509.IPAddress):
            addresses.append(str(each.value))
        else:
            others.append(type(each).__name__)
    return Asked(subject, names, addresses, others, foreign, signed)


def _address(text: str) -> str:
    """Return an address in canonical form; empty if it is invalid."""
    try:
        return str(ipaddress.ip_address(str(text).strip()))
    except ValueError:
        return ""


def _list(values: Iterable[str] | None) -> str:
    return ", ".join(sorted(map(str, values or ()))) or "(none)"


API = "certificates.k8s.io/v1"
KIND = "CertificateSigningRequest"
PARALLEL_CALLS = 8
WRITE_SECONDS = 30.0
UNCONNECTED = "dial tcp"
KUBELET_PORT = 10250
"""Port of the kubelet (kubernetes.io/docs/reference/networking/ports-and-protocols)."""


@dataclass(frozen=True)
class Seen:
    """The state of the kubelets' serving certificates in the cluster.

    :param good: requests to approve.
    :param left: name of a request -> why it stays pending.
    :param waiting: nodes whose kubelet does not serve over TLS -> the reason.
    """

    good: Sequence[Object] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)


def look(api: Api, hosts: Mapping[str, KubeletHost], nodes: Collection[str]) -> Seen:
    """Read the pending requests, and probe the kubelets of `nodes` through the API server.

    :raises KubeError: the requests cannot be read.
    """
    requests = [each for each in api.list(API, KIND) if pending(each)]
    judged = [(each, refusal(each, hosts)) for each in requests]
    left = {str(each["metadata"]["name"]): f"{node_of(each) or '?'}: {why}" for each, why in judged if why}
    with ThreadPoolExecutor(PARALLEL_CALLS) as pool:
        mute = {node: why for node, why in zip(nodes, pool.map(partial(_unserved, api), nodes), strict=True) if why}
    reasons = {node_of(each): why for each, why in judged if why}
    good = [each for each, why in judged if not why]
    return Seen(good, left, {node: reasons.get(node, why) for node, why in mute.items()})


def plan_approvals(
    api: Api, hosts: Mapping[str, KubeletHost], nodes: Sequence[str], *, timeout: float, clock: Clock = CLOCK
) -> tuple[Plan, Seen]:
    """Wait until each of `nodes` serves or has a valid request, and plan to approve the valid requests.

    :param nodes: names of the nodes that must serve; empty in check mode, which does not wait.
    :param timeout: seconds.
    :raises WaitError: nodes neither serve nor have a request that matches the inventory; the message lists them.
    """
    seen = wait_until(
        partial(look, api, hosts, nodes),
        lambda now: set(now.waiting) <= {node_of(each) for each in now.good},
        what="the kubelets to request their certificates (kubernetes_serving_certificates)",
        timeout=timeout,
        show=lambda now: _told(now.waiting),
        clock=clock,
    )
    names = [str(each["metadata"]["name"]) for each in seen.good]
    steps = [
        Step(
            f"Approve the serving certificate of {node_of(each)}",
            partial(_approve, api, each),
            [Change(f"certificate of {name}", "pending", "approved")],
        )
        for name, each in zip(names, seen.good, strict=True)
    ]
    before, after = dict.fromkeys(names, "pending"), dict.fromkeys(names, "approved")
    return Plan(steps, before, after, by_subject=False), seen


def wait_until_served(
    api: Api, hosts: Mapping[str, KubeletHost], nodes: Sequence[str], *, timeout: float, clock: Clock = CLOCK
) -> None:
    """Wait until the kubelets of `nodes` serve, so that logs, exec and metrics work.

    :raises WaitError: some do not; the message lists them.
    """
    wait_until(
        partial(look, api, hosts, nodes),
        lambda now: not now.waiting,
        what="the kubelets to serve with their new certificates",
        timeout=timeout,
        show=lambda now: _told(now.waiting),
        clock=clock,
    )


def _told(waiting: Mapping[str, str]) -> str:
    return "; ".join(f"{node}: {why}" for node, why in sorted(waiting.items()))


def _unserved(api: Api, node: str) -> str:
    """Return why the API server does not reach a kubelet over TLS; empty if it does.

    A kubelet without a certificate ends the handshake. An error before the handshake, `dial tcp` of Go's package net,
    has another cause: the connection itself. So has no answer within the time limit of the call.
    """
    try:
        api.call("GET", f"/api/v1/nodes/{node}/proxy/healthz", what=f"kubelet of {node}")
    except KubeError as error:
        if UNCONNECTED in str(error) or error.no_answer:
            return f"the API server does not reach its kubelet. Open {KUBELET_PORT}/tcp for the control plane ({error})"
        return "it has not requested a certificate"
    return ""


def _approve(api: Api, request: Object) -> None:
    """Approve the exact version of the request that was checked; the server refuses a changed one (status 409)."""
    approved = {"type": "Approved", "status": "True", "reason": "Inventory"}
    approved["message"] = "User, usages, names and addresses are those of the host in the inventory of trainyard."
    body = {**request, "status": {**(request.get("status") or {}), "conditions": [approved]}}
    name = request["metadata"]["name"]
    path = f"{api.path(API, KIND, name=name)}/approval"
    retry(partial(api.call, "PUT", path, body=body, what=f"{KIND} {name}"), timeout=WRITE_SECONDS)
