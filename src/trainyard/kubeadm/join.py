"""State and plan of `kubeadm join` on one host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..core.command import run
from ..core.errors import TrainyardError, WaitError
from ..core.plan import MISSING, Change, Plan, Step
from ..core.waiter import wait_until
from . import program as adm
from .api import api_get, node_is_ready
from .etcd import is_member, leave_step
from .join_settings import JoinSettings, join_configuration
from .reset import reset_step

REGISTRATION_SECONDS = 60.0
"""The kubelet registers its node within a few seconds of its first certificate."""
SILENCE_SECONDS = 90.0
"""The controller manager calls a node not Ready when its kubelet was silent for 50 s (--node-monitor-grace-period)."""
LEAVE_REMEDY = "Remove the host from that cluster and reset it (remove_node.yml, reset.yml with their confirmations)."


@dataclass(frozen=True)
class JoinState:
    """What a host shows before it joins.

    :param kubelet_conf: the kubelet has credentials, so the host has joined a cluster.
    :param remains: files that an interrupted join leaves behind.
    :param static_pods: which static pods of a control plane exist.
    :param ca: PEM of the CA that the host trusts, empty if none.
    :param node: `none` (no credentials), `registered`, `missing`, `down` (no answer yet), `broken` (there will be
        none), `denied` (credentials not accepted) or `forbidden` (they are another node's).
    :param reason: why the API server gave no answer.
    :param kubelet_config_open: others than its owner may read the kubelet's configuration.
    :param etcd_member: this host has the keys of an etcd member.
    :param marker: how far this project's own join of a control plane came; a worker needs none.
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
    """The host's own node object, read with the kubelet's credentials, and why there was no answer."""
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
    """What has to be done: `none`, `join`, `reset` (remove a half-made join, then join) or `restart` (the kubelet).

    :param ca: PEM of the cluster's CA, empty if it is not known.
    :raises TrainyardError: the host belongs elsewhere, or cannot be judged.
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
            remedy=LEAVE_REMEDY + " If the cluster was made anew, the reset of this host is all that is needed.",
        )
    if bool(state.static_pods) != control_plane:
        has, wanted = ("control plane", "worker") if state.static_pods else ("worker", "control plane")
        raise TrainyardError(f"This host is a {has} node of the cluster, not a {wanted} node.", remedy=LEAVE_REMEDY)
    if state.node == "missing":
        return "restart"
    if state.node == "down":
        raise TrainyardError(
            f"This host has joined, but the API server does not answer it. Last answer: {state.reason or 'not ready'}.",
            remedy="Look at the control plane (`crictl ps -a` there) and at the route from this host to it.",
        )
    if state.node == "broken":
        raise TrainyardError(
            f"The API server cannot be asked with /etc/kubernetes/kubelet.conf: {state.reason}.",
            remedy="Look at `kubeadm certs check-expiration` on the control plane. " + LEAVE_REMEDY,
        )
    if state.node == "forbidden":
        raise TrainyardError(
            "This host's kubelet credentials are those of a node with another name.",
            remedy="Give it back its kubernetes_node_name. " + LEAVE_REMEDY,
        )
    if state.node == "denied":
        raise TrainyardError(
            "The API server does not accept this host's kubelet credentials; they have expired or were revoked.",
            remedy="Remove the node and reset the host (remove_node.yml, reset.yml), then run again.",
        )
    return "none"


def make_plan(state: JoinState, settings: JoinSettings) -> Plan:
    """The steps from the observed state to a registered node. Acting on them needs the token and the CA."""
    action = decide(state, settings.ca, settings.control_plane)
    host = settings.host
    # Show only whether there is a CA: the PEM would fill the diff.
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
    """What a real join needs and a plan does not."""
    if not (settings.ca and settings.ca_cert_hash and settings.endpoint):
        raise TrainyardError(
            "The cluster's endpoint and CA are not known: there is no admin kubeconfig on the controller.",
            remedy="Run the role control_plane first; it fetches the kubeconfig to control_plane_kubeconfig.",
        )
    if not settings.token or (settings.control_plane and not settings.certificate_key):
        raise TrainyardError("The join needs a bootstrap token, and a control plane also a certificate key.")


def wait_for_name(settings: JoinSettings) -> None:
    """Wait while the cluster has a Ready node of this name: kubeadm refuses to join then.

    A host that was reset a moment ago, or lost its power in the middle of a join, counts as Ready for a while.

    :raises TrainyardError: the node stays Ready, so another host has this name.
    """
    try:
        wait_until(
            lambda: node_is_ready(settings.endpoint, settings.ca, settings.token, settings.node_name),
            lambda ready: not ready,
            what=f"the old node {settings.node_name} to be given up",
            timeout=SILENCE_SECONDS,
        )
    except WaitError as error:
        raise TrainyardError(
            f"The cluster has a node {settings.node_name} that is Ready and is not this host.",
            remedy="Give this host another kubernetes_node_name.",
        ) from error


def join(settings: JoinSettings) -> None:
    """Run kubeadm join once nobody has the node's name any more."""
    require_credentials(settings)
    wait_for_name(settings)
    with adm.configuration(join_configuration(settings)) as path:
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
