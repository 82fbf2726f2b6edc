"""State and plan of `kubeadm join` on one host.

Parts: the settings of a join, and the kubeadm configuration built from them; the state; the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.command import run
from ..core.errors import TrainyardError, WaitError
from ..core.plan import MISSING, Change, Plan, Step
from ..core.waiter import wait_until
from ..host import resolver
from . import kubeadm_program as adm
from .etcd import is_member, leave_step
from .node_api import api_get, node_is_ready
from .reset import reset_step


@dataclass(frozen=True)
class JoinSettings:
    """Parameters of a join.

    :param endpoint: HOST:PORT of the API; `ca`: PEM of its CA, empty if not known yet (check mode only).
    :param ca_cert_hash: kubeadm's pin of the CA, `sha256:` and the hex digest of its public key (RFC 7469).
    :param schedulable: join a control plane node without the taint that repels ordinary pods.
    :param timeouts: kubeadm's own limits by name (`Timeouts` of v1beta4), as durations like 4m0s.
    :param token: bootstrap token, secret; `certificate_key`: hex key of the shared certificates, secret.
    :param node_ip: address of the node; `control_plane`: join as a control plane node.
    :param timeout: seconds for the whole join.
    :param resolv_conf: resolver file for pods of this node.
    """

    endpoint: str
    ca: str
    node_name: str
    node_ip: str
    ca_cert_hash: str = ""
    token: str = ""
    certificate_key: str = ""
    control_plane: bool = False
    schedulable: bool = False
    timeouts: Mapping[str, str] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    kubelet_extra_args: Mapping[str, str] = field(default_factory=dict)
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    resolv_conf: str = resolver.DEFAULT
    host: adm.Host = field(default_factory=adm.Host)


def join_configuration(settings: JoinSettings) -> dict[str, Any]:
    """Return kubeadm's JoinConfiguration (v1beta4). It contains the token: never print it."""
    extra = {"node-ip": settings.node_ip, **settings.kubelet_extra_args}
    document: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": settings.endpoint,
                "token": settings.token,
                "caCertHashes": [settings.ca_cert_hash],
            }
        },
        "nodeRegistration": {
            "name": settings.node_name,
            "criSocket": settings.cri_socket,
            "imagePullSerial": False,
            "kubeletExtraArgs": [{"name": name, "value": value} for name, value in extra.items() if value],
        },
        "timeouts": {"discovery": "60s", "tlsBootstrap": "120s", **settings.timeouts},
    }
    if settings.schedulable:
        document["nodeRegistration"]["taints"] = []
    if settings.control_plane:
        document["controlPlane"] = {
            "localAPIEndpoint": {"advertiseAddress": settings.node_ip},
            "certificateKey": settings.certificate_key,
        }
    return document


REGISTRATION_SECONDS = 60.0
"""The kubelet registers its node within a few seconds of its first certificate."""
SILENCE_SECONDS = 90.0
"""The controller manager marks a node as not Ready after 50 s without its kubelet (--node-monitor-grace-period)."""
LEAVE_REMEDY = "Remove the host from that cluster and reset it (remove_node.yml, reset.yml with their confirmations)."


@dataclass(frozen=True)
class JoinState:
    """The observed state of a host before it joins.

    :param kubelet_conf: the kubelet has credentials, so the host has joined a cluster.
    :param remains: files that an interrupted join leaves behind.
    :param static_pods: names of the existing static pods of a control plane.
    :param ca: PEM of the CA that the host trusts, empty if none.
    :param node: `none` (no credentials), `registered`, `missing`, `down` (no answer yet), `broken` (waiting does not
        help), `denied` (credentials not accepted) or `forbidden` (credentials of another node).
    :param reason: why the API server did not answer.
    :param kubelet_config_open: users other than its owner may read the kubelet's configuration.
    :param etcd_member: this host has the keys of an etcd member.
    :param marker: progress of this project's own join of a control plane; empty for workers.
    """

    kubelet_conf: bool = False
    remains: Sequence[str] = ()
    static_pods: Sequence[str] = ()
    ca: str = ""
    node: str = "none"
    reason: str = ""
    marker: str = ""
    kubelet_config_open: bool = False
    etcd_member: bool = False


def node_state(host: adm.Host, name: str) -> tuple[str, str]:
    """Read the host's own node object with the kubelet's credentials; return its state and why there was no answer."""
    answer = api_get(host.file("kubelet.conf"), f"/api/v1/nodes/{name}")
    states = {200: "registered", 404: "missing", 401: "denied", 403: "forbidden"}
    return states.get(answer.status, "broken" if answer.final else "down"), answer.reason


def observe(host: adm.Host, node_name: str) -> JoinState:
    """Read the state of a host; changes nothing."""
    joined = host.has("kubelet.conf")
    node, reason = node_state(host, node_name) if joined and adm.installed() else ("none", "")
    return JoinState(
        kubelet_conf=joined,
        remains=host.present(("bootstrap-kubelet.conf", "pki/ca.crt")),
        static_pods=host.static_pods(),
        ca=host.read("pki/ca.crt").strip(),
        node=node,
        reason=reason,
        marker=host.marker("join"),
        kubelet_config_open=host.kubelet_config_is_open(),
        etcd_member=is_member(host),
    )


def decide(state: JoinState, ca: str, control_plane: bool) -> str:
    """Return the next action: `none`, `join`, `reset` (undo an incomplete join, then join) or `restart` (the kubelet).

    :param ca: PEM of the cluster's CA, empty if unknown.
    :raises TrainyardError: the host belongs to another cluster or role, or its state cannot be determined.
    """
    if control_plane and state.marker == adm.STARTED:
        return "reset" if state.kubelet_conf or state.remains or state.static_pods else "join"
    if not state.kubelet_conf:
        if state.static_pods:
            raise TrainyardError(
                f"This host has a control plane ({', '.join(state.static_pods)}) without a kubelet configuration.",
                remedy=LEAVE_REMEDY,
            )
        return "reset" if state.remains else "join"
    if ca and state.ca != ca.strip():
        raise TrainyardError(
            "This host has joined another cluster: its CA is not the one of this inventory's cluster.",
            remedy=LEAVE_REMEDY + " If the cluster was created again, only reset this host.",
        )
    if bool(state.static_pods) != control_plane:
        has, wanted = ("control plane", "worker") if state.static_pods else ("worker", "control plane")
        raise TrainyardError(f"This host is a {has} node of the cluster, not a {wanted} node.", remedy=LEAVE_REMEDY)
    if state.node == "missing":
        return "restart"
    if state.node == "down":
        raise TrainyardError(
            f"This host has joined, but the API server does not answer it. Last answer: {state.reason or 'not ready'}.",
            remedy="Check the control plane (`crictl ps -a` there) and the route from this host to it.",
        )
    if state.node == "broken":
        raise TrainyardError(
            f"The API server cannot be queried with /etc/kubernetes/kubelet.conf: {state.reason}.",
            remedy="Run `kubeadm certs check-expiration` on the control plane. " + LEAVE_REMEDY,
        )
    if state.node == "forbidden":
        raise TrainyardError(
            "This host's kubelet credentials are those of a node with another name.",
            remedy="Restore its kubernetes_node_name. " + LEAVE_REMEDY,
        )
    if state.node == "denied":
        raise TrainyardError(
            "The API server does not accept this host's kubelet credentials; they have expired or were revoked.",
            remedy="Remove the node and reset the host (remove_node.yml, reset.yml), then run again.",
        )
    return "none"


def make_plan(state: JoinState, settings: JoinSettings) -> Plan:
    """Plan the steps from the observed state to a registered node. Executing them needs the token and the CA."""
    action = decide(state, settings.ca, settings.control_plane)
    host = settings.host
    # Show only whether a CA exists, because the PEM would fill the diff.
    before = {**asdict(state), "ca": bool(state.ca), "remains": list(state.remains)}
    after = {**before, "kubelet_conf": True, "ca": True, "remains": ["pki/ca.crt"], "node": "registered", "reason": ""}
    after |= {"kubelet_config_open": False, "etcd_member": settings.control_plane}
    registered = Step("Wait until the node is registered", lambda: wait_registered(settings))
    if action == "none":
        protect = [adm.protect_step(host)] if state.kubelet_config_open else []
        return Plan(protect, before, {**before, "kubelet_config_open": False}, by_subject=False)
    if action == "restart":
        again = Change(adm.MEMBERSHIP, MISSING, "registered by a restart of the kubelet")
        restart = Step("Restart the kubelet, so that it registers its node again", restart_kubelet, [again])
        return Plan([restart, registered], before, after, by_subject=False)
    steps = []
    if action == "reset":
        steps += [leave_step(host, settings.node_ip)] if state.etcd_member else []
        steps.append(reset_step(host, settings.cri_socket, settings.timeout))
    where = f" at {settings.endpoint}" if settings.endpoint else ""
    member = Change(adm.MEMBERSHIP, MISSING, "kubeadm join")
    join_step = Step(f"Join the cluster{where} (kubeadm join)", lambda: join(settings), [member])
    if settings.control_plane:
        steps += [adm.marker_step(host, "join", adm.STARTED), join_step, adm.marker_step(host, "join", adm.COMPLETE)]
        after |= {"marker": adm.COMPLETE, "static_pods": list(adm.STATIC_PODS)}
    else:
        steps.append(join_step)
    steps += [registered, adm.protect_step(host, follows=True)]
    return Plan(steps, before, after, by_subject=False)


def require_credentials(settings: JoinSettings) -> None:
    """Check for the credentials that a join needs, and that planning does not."""
    if not (settings.ca and settings.ca_cert_hash and settings.endpoint):
        raise TrainyardError(
            "The cluster's endpoint and CA are unknown: the controller has no admin kubeconfig.",
            remedy="Run the role control_plane first; it fetches the kubeconfig to control_plane_kubeconfig.",
        )
    if not settings.token or (settings.control_plane and not settings.certificate_key):
        raise TrainyardError("The join needs a bootstrap token, and a control plane also a certificate key.")


def wait_for_name(settings: JoinSettings) -> None:
    """Wait until the cluster has no Ready node of this name, because kubeadm would refuse to join.

    A host that was just reset, or lost power during a join, still counts as Ready for a while.

    :raises TrainyardError: the node stays Ready, so another host has this name.
    """
    try:
        wait_until(
            lambda: node_is_ready(settings.endpoint, settings.ca, settings.token, settings.node_name),
            lambda ready: not ready,
            what=f"the old node {settings.node_name} to become not Ready",
            timeout=SILENCE_SECONDS,
        )
    except WaitError as error:
        raise TrainyardError(
            f"The cluster has a node {settings.node_name} that is Ready and is not this host.",
            remedy="Set another kubernetes_node_name for this host.",
        ) from error


def join(settings: JoinSettings) -> None:
    """Run kubeadm join once no Ready node has the name."""
    require_credentials(settings)
    wait_for_name(settings)
    documents = adm.with_patches(settings.host, [join_configuration(settings)], settings.resolv_conf)
    with adm.configuration(*documents) as path:
        adm.kubeadm(["join", "--config", path], timeout=settings.timeout, ignore=settings.ignore)


def restart_kubelet() -> None:
    run(["systemctl", "restart", "kubelet.service"], timeout=60)


def wait_registered(settings: JoinSettings) -> None:
    wait_until(
        lambda: node_state(settings.host, settings.node_name),
        lambda state: state[0] == "registered",
        what=f"node {settings.node_name} to register",
        timeout=REGISTRATION_SECONDS,
    )
