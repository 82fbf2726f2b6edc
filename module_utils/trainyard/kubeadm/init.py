"""State and plan of `kubeadm init` on one host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from . import program as adm
from .api import api_status
from .reset import reset_step

KUBEADM_FILES = (
    "pki/ca.crt",
    "admin.conf",
    "super-admin.conf",
    "kubelet.conf",
    "bootstrap-kubelet.conf",
    "controller-manager.conf",
    "scheduler.conf",
    *(f"manifests/{name}.yaml" for name in adm.STATIC_PODS),
)
RESUME_PHASES = ("upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all", "addon all")
"""Phases of init that need an answering API server, in kubeadm's order. Each may be repeated."""
RESET_REMEDY = "If this host's cluster may be destroyed, run reset.yml for it with its confirmation, then again."


@dataclass(frozen=True)
class InitState:
    """What a host shows before init.

    :param marker: how far this project's own init came, see `kubeadm.Host.marker`.
    :param files: which of `KUBEADM_FILES` exist.
    :param etcd_data: an etcd database exists.
    :param api: `none` (no admin.conf), `down`, `denied` (admin.conf is not accepted) or `ready`.
    :param configured: the cluster has the ConfigMap that kubeadm leaves and joining nodes read.
    :param kubelet_config: the kubelet has a configuration.
    """

    marker: str = ""
    files: Sequence[str] = ()
    etcd_data: bool = False
    api: str = "none"
    configured: bool = False
    kubelet_config: bool = False

    @property
    def static_pods_written(self) -> bool:
        return all(f"manifests/{name}.yaml" in self.files for name in adm.STATIC_PODS)

    @property
    def may_come_back(self) -> bool:
        """Down, but the kubelet has all it needs to bring the API server up by itself, as after a power cut."""
        return self.api == "down" and self.kubelet_config and self.static_pods_written


@dataclass(frozen=True)
class InitSettings:
    """How to initialise.

    :param config: kubeadm configuration, YAML text.
    :param ignore: preflight checks to ignore; `cri_socket`: URL of the container runtime's socket.
    :param timeout: seconds for one kubeadm command.
    """

    config: str
    ignore: Sequence[str] = ()
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    host: adm.Host = field(default_factory=adm.Host)


def observe(host: adm.Host) -> InitState:
    """Read the state of a host; changes nothing."""
    api, configured = "none", False
    if host.has("admin.conf") and adm.installed():
        ready = api_status(host.file("admin.conf"), "/readyz")
        api = {200: "ready", 401: "denied", 403: "denied"}.get(ready, "down")
        if api == "ready":
            path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
            # 403 is an admin.conf whose role binding init had no time to make.
            configured = api_status(host.file("admin.conf"), path) == 200
    return InitState(
        marker=host.marker("init"),
        files=host.present(KUBEADM_FILES),
        etcd_data=host.has_etcd_data(),
        api=api,
        configured=configured,
        kubelet_config=host.has_kubelet_config(),
    )


def decide(state: InitState) -> str:
    """What has to be done: `none`, `init`, `resume` or `reset` (remove the half-made state, then init).

    :raises TrainyardError: the state is not one that this project made or may remove.
    """
    if state.marker == adm.STARTED:
        if state.api == "ready":
            return "resume"
        return "reset" if state.files or state.etcd_data else "init"
    if not state.files:
        if state.etcd_data:
            raise TrainyardError(
                "The etcd data directory holds a database, but the host has no Kubernetes configuration.",
                remedy="Restore /etc/kubernetes if the database is wanted. " + RESET_REMEDY,
            )
        return "init"
    if state.api == "ready":
        if state.configured:
            return "none"
        if state.marker == adm.COMPLETE:
            return "resume"
    raise TrainyardError(_refusal(state), remedy=_remedy(state), state=asdict(state))


def _refusal(state: InitState) -> str:
    if state.api == "ready":
        return "The API server answers, but the cluster was not made by kubeadm."
    if state.api == "denied":
        return "The API server does not accept /etc/kubernetes/admin.conf."
    if state.api == "down":
        return "This host has a cluster whose API server does not answer, and not a half-made one of this project."
    return "This host has files of Kubernetes that this project did not make: " + ", ".join(state.files) + "."


def _remedy(state: InitState) -> str:
    if state.api == "denied":
        return "Look at `kubeadm certs check-expiration`. " + RESET_REMEDY
    if state.api == "down":
        return "Look at `journalctl -u kubelet` and `crictl ps -a` on the host. " + RESET_REMEDY
    return RESET_REMEDY


def make_plan(state: InitState, settings: InitSettings) -> Plan:
    """The steps from the observed state to a complete control plane."""
    action = decide(state)
    host = settings.host
    before = {**asdict(state), "files": list(state.files)}
    if action == "none":
        return Plan(before=before)
    steps: list[Step] = []
    if action == "reset":
        steps.append(reset_step(host, settings.cri_socket, settings.timeout))
    if action in ("init", "reset"):
        steps += [
            adm.marker_step(host, "init", adm.STARTED),
            Step("Initialise the control plane (kubeadm init)", lambda: init(settings)),
        ]
    else:
        steps += [
            Step(f"Repeat the phase of an interrupted init: {phase}", _phase(phase, settings))
            for phase in RESUME_PHASES
        ]
    steps += [
        Step("Keep the kubeadm configuration of this cluster", lambda: host.store("init.yaml", settings.config)),
        adm.marker_step(host, "init", adm.COMPLETE),
    ]
    after = {
        "marker": adm.COMPLETE,
        "files": [name for name in KUBEADM_FILES if name != "bootstrap-kubelet.conf"],
        "etcd_data": True,
        "api": "ready",
        "configured": True,
        "kubelet_config": True,
    }
    return Plan(steps, before=before, after=after)


def init(settings: InitSettings) -> None:
    """Run kubeadm init with the validated configuration; the kubelet's configuration is then its owner's only."""
    with adm.configuration(settings.config) as path:
        adm.kubeadm(["init", "--config", path, "--skip-token-print"], timeout=settings.timeout, ignore=settings.ignore)
    settings.host.protect_kubelet_config()


def _phase(phase: str, settings: InitSettings) -> Callable[[], None]:
    def act() -> None:
        with adm.configuration(settings.config) as path:
            adm.kubeadm(["init", "phase", *phase.split(), "--config", path], timeout=settings.timeout)

    return act


def config_drift(host: adm.Host, config: str) -> bool:
    """Whether a finished cluster was made with another configuration than the one asked for now."""
    stored = host.stored("init.yaml")
    return bool(stored) and stored.strip() != config.strip()
