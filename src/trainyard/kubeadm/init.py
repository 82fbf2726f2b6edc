"""State and plan of `kubeadm init` on one host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..core.errors import TrainyardError
from ..core.new_clusters import as_made
from ..core.plan import MISSING, Change, Plan, Step
from . import program as adm
from .api import api_get
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
RESUME_PHASES = ("upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all")
"""Phases of init that need an answering API server, in kubeadm's order. Each may be repeated.

The addons are none of them: the role network applies them. kubeadm refuses to repeat its own phase with a CoreDNS that
is newer than its table of migrations.
"""
WANTED = "wanted.yaml"
"""In the record of a finished cluster: the configuration that is asked for now, when it is not the cluster's."""
RESET_REMEDY = "If this host's cluster may be destroyed, run reset.yml for it with its confirmation, then again."


@dataclass(frozen=True)
class InitState:
    """What a host shows before init.

    :param marker: how far this project's own init came, see `kubeadm.Host.marker`.
    :param files: which of `KUBEADM_FILES` exist.
    :param etcd_data: an etcd database exists.
    :param api: `none` (no admin.conf), `down`, `broken` (never answers as it is), `denied` or `ready`.
    :param reason: why the API server gave no answer.
    :param configured: the cluster has the ConfigMap that kubeadm leaves and joining nodes read.
    :param kubelet_config: the kubelet has a configuration; `kubelet_config_open`: others than its owner may read it.
    """

    marker: str = ""
    files: Sequence[str] = ()
    etcd_data: bool = False
    api: str = "none"
    reason: str = ""
    configured: bool = False
    kubelet_config: bool = False
    kubelet_config_open: bool = False

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

    :param config: the documents of the kubeadm configuration.
    :param ignore: preflight checks to ignore; `cri_socket`: URL of the container runtime's socket.
    :param timeout: seconds for one kubeadm command.
    """

    config: Sequence[Mapping[str, Any]]
    ignore: Sequence[str] = ()
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    host: adm.Host = field(default_factory=adm.Host)


def observe(host: adm.Host) -> InitState:
    """Read the state of a host; changes nothing."""
    api, reason, configured = "none", "", False
    if host.has("admin.conf") and adm.installed():
        ready = api_get(host.file("admin.conf"), "/readyz")
        api = {200: "ready", 401: "denied", 403: "denied"}.get(ready.status, "broken" if ready.final else "down")
        reason = ready.reason
        if api == "ready":
            path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
            # 403 is an admin.conf whose role binding init had no time to make.
            configured = api_get(host.file("admin.conf"), path).status == 200
    return InitState(
        marker=host.marker("init"),
        files=host.present(KUBEADM_FILES),
        etcd_data=host.has_etcd_data(),
        api=api,
        reason=reason,
        configured=configured,
        kubelet_config=host.has_kubelet_config(),
        kubelet_config_open=host.kubelet_config_is_open(),
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
    if state.api == "broken":
        return f"The API server cannot be asked with /etc/kubernetes/admin.conf: {state.reason}."
    if state.api == "down":
        return (
            "This host has a cluster whose API server does not answer, and not a half-made one of this project. "
            f"Last answer: {state.reason or 'not ready'}."
        )
    return "This host has files of Kubernetes that this project did not make: " + ", ".join(state.files) + "."


def _remedy(state: InitState) -> str:
    if state.api in ("denied", "broken"):
        return "Look at `kubeadm certs check-expiration`. " + RESET_REMEDY
    if state.api == "down":
        return "Look at `journalctl -u kubelet` and `crictl ps -a` on the host. " + RESET_REMEDY
    return RESET_REMEDY


def make_plan(state: InitState, settings: InitSettings) -> Plan:
    """The steps from the observed state to a complete control plane."""
    action = decide(state)
    host = settings.host
    before = {**asdict(state), "files": list(state.files)}
    steps: list[Step] = []
    if action == "none":
        if state.kubelet_config_open:
            steps.append(adm.protect_step(host))
        wanted = adm.as_text(settings.config)
        if config_drift(host, settings.config) and host.stored(WANTED) != wanted:
            what = f"Keep the configuration that is asked for in {host.state}/{WANTED}"
            change = Change("kubeadm configuration", "that of the cluster", "another one in the inventory")
            steps.append(Step(what, lambda: host.store(WANTED, wanted), [change]))
        return Plan(steps, before=before, after={**before, "kubelet_config_open": False}, by_subject=False)
    if action == "reset":
        steps.append(reset_step(host, settings.cri_socket, settings.timeout))
    if action in ("init", "reset"):
        member = Change(adm.MEMBERSHIP, MISSING, "kubeadm init")
        steps += [
            adm.marker_step(host, "init", adm.STARTED),
            Step("Initialise the control plane (kubeadm init)", lambda: init(settings), [member]),
        ]
    else:
        member = Change(adm.MEMBERSHIP, "interrupted", "the missing phases of kubeadm init")
        steps += [
            Step(f"Repeat the phase of an interrupted init: {phase}", _phase(phase, settings))
            for phase in RESUME_PHASES
        ]
        steps[0] = replace(steps[0], changes=[member])
    steps += [
        Step(
            "Keep the kubeadm configuration of this cluster",
            lambda: host.store("init.yaml", adm.as_text(settings.config)),
        ),
        adm.protect_step(host, follows=True),
        adm.marker_step(host, "init", adm.COMPLETE),
    ]
    after = {
        "marker": adm.COMPLETE,
        "files": [name for name in KUBEADM_FILES if name != "bootstrap-kubelet.conf"],
        "etcd_data": True,
        "api": "ready",
        "reason": "",
        "configured": True,
        "kubelet_config": True,
        "kubelet_config_open": False,
    }
    return Plan(steps, before=before, after=after, by_subject=False)


def init(settings: InitSettings) -> None:
    """Run kubeadm init with the validated configuration."""
    with adm.configuration(*settings.config) as path:
        adm.kubeadm(["init", "--config", path, "--skip-token-print"], timeout=settings.timeout, ignore=settings.ignore)


def _phase(phase: str, settings: InitSettings) -> Callable[[], None]:
    def act() -> None:
        with adm.configuration(*settings.config) as path:
            adm.kubeadm(["init", "phase", *phase.split(), "--config", path], timeout=settings.timeout)

    return act


def config_drift(host: adm.Host, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which fields of a finished cluster's configuration are not those asked for now.

    `InitConfiguration` is not compared: it ends with init.

    :returns: for instance `ClusterConfiguration.apiServer.extraArgs`; empty as well where none was kept.
    """
    kept = {document.get("kind"): document for document in adm.from_text(host.stored("init.yaml"))}
    fields: list[str] = []
    for document in documents:
        kind = document.get("kind")
        if kind in kept and kind != "InitConfiguration":
            fields += _differences(str(kind), kept[kind], as_made(document, kept[kind]))
    return fields


def _differences(path: str, kept: Any, wanted: Any) -> list[str]:
    if isinstance(kept, Mapping) and isinstance(wanted, Mapping):
        names = sorted({*kept, *wanted})
        return [field for name in names for field in _differences(f"{path}.{name}", kept.get(name), wanted.get(name))]
    return [] if kept == wanted else [path]
