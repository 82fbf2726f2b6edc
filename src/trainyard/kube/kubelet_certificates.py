"""Approve kubelets' requests for serving certificates, and wait until the kubelets use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from ..core.clock import CLOCK, Clock
from ..core.plan import Change, Plan, Step
from ..core.waiter import wait_until
from .api import Api, KubeError, Object
from .apply import retry
from .kubelet_requests import KubeletHost, node_of, pending, refusal

API = "certificates.k8s.io/v1"
KIND = "CertificateSigningRequest"
PARALLEL_CALLS = 8
WRITE_SECONDS = 30.0


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
        mute = [node for node, served in zip(nodes, pool.map(partial(_serves, api), nodes), strict=True) if not served]
    reasons = {node_of(each): why for each, why in judged if why}
    good = [each for each, why in judged if not why]
    return Seen(good, left, {node: reasons.get(node, "it has not requested a certificate") for node in mute})


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


def _serves(api: Api, node: str) -> bool:
    """Return whether the API server reaches a kubelet over TLS. A kubelet without a certificate ends the handshake."""
    try:
        api.call("GET", f"/api/v1/nodes/{node}/proxy/healthz", what=f"kubelet of {node}")
    except KubeError:
        return False
    return True


def _approve(api: Api, request: Object) -> None:
    """Approve the exact version of the request that was checked; the server refuses a changed one (status 409)."""
    approved = {"type": "Approved", "status": "True", "reason": "Inventory"}
    approved["message"] = "User, usages, names and addresses are those of the host in the inventory of trainyard."
    body = {**request, "status": {**(request.get("status") or {}), "conditions": [approved]}}
    name = request["metadata"]["name"]
    path = f"{api.path(API, KIND, name=name)}/approval"
    retry(partial(api.call, "PUT", path, body=body, what=f"{KIND} {name}"), timeout=WRITE_SECONDS)
