"""State and plan of `kubeadm init` on one host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..core.errors import TrainyardError
from ..core.new_clusters import as_made
from ..core.plan import MISSING, Change, Plan, Step
from ..host import resolver
from . import kubeadm_program as adm
from .node_api import api_get
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
"""Phases of init that need a running API server, in kubeadm's order. Each may be repeated.

The addon phase is excluded, because the role network applies the addons. kubeadm refuses to repeat that phase if
CoreDNS is newer than its table of migrations.
"""
WANTED = "wanted.yaml"
"""File in the record of a finished cluster with the desired configuration, if it differs from the cluster's."""
RESET_REMEDY = "If this host's cluster may be destroyed, run reset.yml for it with its confirmation, then again."


@dataclass(frozen=True)
class InitState:
    """The observed state of a host before init.

    :param marker: progress of this project's own init, see `program.Host.marker`.
    :param files: the existing ones of `KUBEADM_FILES`.
    :param etcd_data: an etcd database exists.
    :param api: `none` (no admin.conf), `down`, `broken` (waiting does not help), `denied` or `ready`.
    :param reason: why the API server did not answer.
    :param configured: the cluster has the ConfigMap that kubeadm writes and joining nodes read.
    :param kubelet_config: the kubelet has a configuration; `kubelet_config_open`: users other than its owner may read
        it.
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
        """Return whether the API server is down but the kubelet can start it by itself, as after a power cut."""
        return self.api == "down" and self.kubelet_config and self.static_pods_written


@dataclass(frozen=True)
class InitSettings:
    """Parameters of an init.

    :param config: the documents of the kubeadm configuration.
    :param ignore: preflight checks to ignore; `cri_socket`: URL of the container runtime's socket.
    :param timeout: seconds for one kubeadm command.
    :param resolv_conf: resolver file for pods of this node.
    """

    config: Sequence[Mapping[str, Any]]
    ignore: Sequence[str] = ()
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    resolv_conf: str = resolver.DEFAULT
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
            # Status 403: init was interrupted before it created the role binding of admin.conf.
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
    """Return the next action: `none`, `init`, `resume` or `reset` (remove the incomplete state, then init).

    :raises TrainyardError: this project did not create the state, or may not remove it.
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
        return "The API server answers, but the cluster was not created by kubeadm."
    if state.api == "denied":
        return "The API server does not accept /etc/kubernetes/admin.conf."
    if state.api == "broken":
        return f"The API server cannot be queried with /etc/kubernetes/admin.conf: {state.reason}."
    if state.api == "down":
        return (
            "This host has a cluster whose API server does not answer, and which is not an interrupted init of this "
            f"project. Last answer: {state.reason or 'not ready'}."
        )
    return "This host has files of Kubernetes that this project did not make: " + ", ".join(state.files) + "."


def _remedy(state: InitState) -> str:
    if state.api in ("denied", "broken"):
        return "Find the cause with `kubeadm certs check-expiration` on the host. " + RESET_REMEDY
    if state.api == "down":
        return "Find the cause with `journalctl -u kubelet` and `crictl ps -a` on the host. " + RESET_REMEDY
    return RESET_REMEDY


def make_plan(state: InitState, settings: InitSettings) -> Plan:
    """Plan the steps from the observed state to a complete control plane."""
    action = decide(state)
    host = settings.host
    before = {**asdict(state), "files": list(state.files)}
    steps: list[Step] = []
    if action == "none":
        if state.kubelet_config_open:
            steps.append(adm.protect_step(host))
        wanted = adm.as_text(settings.config)
        if config_drift(host, settings.config) and host.stored(WANTED) != wanted:
            what = f"Save the configuration of the inventory as {host.state}/{WANTED}"
            change = Change("kubeadm configuration", "that of the cluster", "a different one in the inventory")
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
            "Save the kubeadm configuration of this cluster",
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
    with adm.configuration(*adm.with_patches(settings.host, settings.config, settings.resolv_conf)) as path:
        adm.kubeadm(["init", "--config", path, "--skip-token-print"], timeout=settings.timeout, ignore=settings.ignore)


def _phase(phase: str, settings: InitSettings) -> Callable[[], None]:
    def act() -> None:
        with adm.configuration(*adm.with_patches(settings.host, settings.config, settings.resolv_conf)) as path:
            adm.kubeadm(["init", "phase", *phase.split(), "--config", path], timeout=settings.timeout)

    return act


def config_drift(host: adm.Host, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields of a finished cluster's configuration that differ from the desired one.

    `InitConfiguration` is not compared, because it has no effect after init.

    :returns: for example `ClusterConfiguration.apiServer.extraArgs`; empty if no configuration was saved.
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
