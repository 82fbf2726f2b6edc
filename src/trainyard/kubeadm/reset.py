"""Undo init or join on one host: read the existing state, and plan the steps that remove it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from ..core.command import run
from ..core.errors import CommandError, TrainyardError, WaitError
from ..core.plan import Plan, Step
from ..core.waiter import wait_until
from . import kubeadm_program as adm
from .etcd import is_member, leave_step

INTERFACES = "/sys/class/net"
CRICTL_TIMEOUT = 60
"""Seconds for one request to the container runtime."""


@dataclass(frozen=True)
class ResetState:
    """The objects that a reset would remove.

    :param files: kubeconfigs, keys, certificates and static pods, relative to kubeadm's directory.
    :param etcd_data: an etcd database exists; `kubelet_config`: the kubelet has a configuration.
    :param etcd_member: the host has the keys of an etcd member.
    :param leftovers: paths and network interfaces that kubeadm itself leaves behind.
    """

    files: Sequence[str] = ()
    etcd_data: bool = False
    kubelet_config: bool = False
    etcd_member: bool = False
    leftovers: Sequence[str] = ()

    @property
    def has_node(self) -> bool:
        """Return whether any part of a node exists, even if init or join stopped before it created certificates."""
        return bool(self.files) or self.etcd_data or self.kubelet_config


@dataclass(frozen=True)
class ResetSettings:
    """Parameters of a reset.

    :param paths: files and folders to remove in addition to kubeadm's own; `interfaces`: network interfaces.
    :param cri_socket: URL of the container runtime's socket; `timeout`: seconds for one command.
    :param leave_etcd: other members remain, so remove this one from etcd.
    :param node_ip: address of the node, which identifies an etcd member that never started.
    """

    paths: Sequence[str] = ()
    interfaces: Sequence[str] = ()
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    leave_etcd: bool = True
    node_ip: str = ""
    host: adm.Host = field(default_factory=adm.Host)


def require_confirmation(name: str, confirmed: Sequence[str]) -> None:
    """Refuse a host that was not confirmed. The check is next to the destructive code, so no limit or tag skips it."""
    if name not in [item.strip() for item in confirmed]:
        raise TrainyardError(
            f"The reset of {name} is not confirmed: kubernetes_reset_confirm is '{','.join(confirmed)}'.",
            remedy=f"If all Kubernetes data on {name}, including etcd, may be destroyed, add {name} to "
            "kubernetes_reset_confirm.",
        )


def observe(settings: ResetSettings) -> ResetState:
    """Read the existing state; changes nothing."""
    host = settings.host
    paths = [path for path in (*settings.paths, host.state) if os.path.lexists(path)]
    links = [name for name in settings.interfaces if os.path.exists(os.path.join(INTERFACES, name))]
    return ResetState(
        files=sorted(_files(host.etc)),
        etcd_data=host.has_etcd_data(),
        kubelet_config=host.has_kubelet_config(),
        etcd_member=is_member(host),
        leftovers=[*paths, *links],
    )


def _files(etc: str) -> list[str]:
    """Return kubeconfigs and all files below the directories that kubeadm fills; other files are not kubeadm's."""
    found = [name for name in (os.listdir(etc) if os.path.isdir(etc) else []) if name.endswith(".conf")]
    for folder in ("manifests", "pki"):
        for directory, _, names in os.walk(os.path.join(etc, folder)):
            found += [os.path.relpath(os.path.join(directory, name), etc) for name in names]
    return found


def make_plan(state: ResetState, settings: ResetSettings) -> Plan:
    """Plan the steps from the observed state to a host without any trace of a node."""
    steps = [leave_step(settings.host, settings.node_ip)] if state.etcd_member and settings.leave_etcd else []
    if state.has_node:
        steps.append(reset_step(settings.host, settings.cri_socket, settings.timeout))
    if state.leftovers:
        steps.append(Step("Remove " + ", ".join(state.leftovers), lambda: _remove(state.leftovers, settings)))
    return Plan(steps, before=asdict(state), after=asdict(ResetState(files=[], leftovers=[])))


def _remove(leftovers: Sequence[str], settings: ResetSettings) -> None:
    for item in leftovers:
        if item in settings.interfaces:
            # Status 1: the interface may have disappeared together with its processes.
            run(["ip", "link", "delete", item], timeout=30, ok=(0, 1))
        elif os.path.isdir(item) and not os.path.islink(item):
            shutil.rmtree(item)
        elif os.path.lexists(item):
            os.unlink(item)


def reset_step(host: adm.Host, cri_socket: str, timeout: float) -> Step:
    """Return the step that removes a node, or the remains of an interrupted init or join."""

    def reset() -> None:
        adm.require_installed()
        document = {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ResetConfiguration",
            "force": True,
            "criSocket": cri_socket,
            # Without an API server, kubeadm continues with the state that it finds on the host.
            "timeouts": {"kubernetesAPICall": "5s", "etcdAPICall": "5s"},
        }
        with adm.configuration(document) as path:
            adm.kubeadm(["reset", "--config", path], timeout=timeout)
        remove_pods(cri_socket, timeout)
        # kubeadm finds the data directory through the etcd manifest, which an interrupted reset has already removed.
        shutil.rmtree(os.path.join(host.etcd, "member"), ignore_errors=True)

    return Step("Undo init or join on this host (kubeadm reset)", reset)


def remove_pods(cri_socket: str, timeout: float) -> None:
    """Remove the pods that `kubeadm reset` left: it only warns about pods that it cannot stop in time.

    If the host joins again, its kubelet would continue such a pod without running its init containers. The files that
    those write would be missing, such as the network configuration that the reset removed.

    :raises TrainyardError: pods remain after `timeout` seconds.
    """
    # crictl's default of two seconds per request is too short for a busy host.
    crictl = ["crictl", f"--runtime-endpoint={cri_socket}", f"--timeout={CRICTL_TIMEOUT}s"]

    def left() -> list[str]:
        try:
            found = run([*crictl, "pods", "--quiet"], timeout=CRICTL_TIMEOUT).stdout.split()
        except CommandError:
            # Like kubeadm, assume that a stopped runtime has no pods.
            return []
        if found:
            with suppress(CommandError):
                run([*crictl, "rmp", "--force", *found], timeout=timeout)
        return found

    try:
        wait_until(left, lambda found: not found, what="the node's pods to go", timeout=timeout, show=", ".join)
    except WaitError as error:
        raise TrainyardError(
            f"After kubeadm reset, the node still has the pods {error.facts['last_state']}.",
            remedy="Run `crictl pods` and `journalctl -u containerd` on the host to find the cause. Then reset again.",
        ) from error
