"""Undo init or join on one host: what is there, and the steps that remove it."""

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
from . import program as adm
from .etcd import is_member, leave_step

INTERFACES = "/sys/class/net"
CRICTL_TIMEOUT = 60
"""Seconds for one request to the container runtime."""


@dataclass(frozen=True)
class ResetState:
    """What a reset would remove.

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
        """Any part of a node, also one whose init or join was interrupted before it had certificates."""
        return bool(self.files) or self.etcd_data or self.kubelet_config


@dataclass(frozen=True)
class ResetSettings:
    """How to reset.

    :param paths: files and folders to remove beside those that kubeadm knows; `interfaces`: network interfaces.
    :param cri_socket: URL of the container runtime's socket; `timeout`: seconds for one command.
    :param leave_etcd: other members stay, so that etcd must not count this one any more.
    :param node_ip: address of the node, by which etcd knows a member that never started.
    """

    paths: Sequence[str] = ()
    interfaces: Sequence[str] = ()
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    leave_etcd: bool = True
    node_ip: str = ""
    host: adm.Host = field(default_factory=adm.Host)


def require_confirmation(name: str, confirmed: Sequence[str]) -> None:
    """Refuse a host that was not named: this stands where the destruction is, so no limit or tag gets round it."""
    if name not in [item.strip() for item in confirmed]:
        raise TrainyardError(
            f"The reset of {name} is not confirmed: kubernetes_reset_confirm is '{','.join(confirmed)}'.",
            remedy=f"If all that Kubernetes keeps on {name} may be destroyed, etcd data included, name it there.",
        )


def observe(settings: ResetSettings) -> ResetState:
    """Read what is there; changes nothing."""
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
    """Kubeconfigs, and whatever lies under the directories that kubeadm fills; other files there are not its own."""
    found = [name for name in (os.listdir(etc) if os.path.isdir(etc) else []) if name.endswith(".conf")]
    for folder in ("manifests", "pki"):
        for directory, _, names in os.walk(os.path.join(etc, folder)):
            found += [os.path.relpath(os.path.join(directory, name), etc) for name in names]
    return found


def make_plan(state: ResetState, settings: ResetSettings) -> Plan:
    """The steps from the observed state to a host that never was a node."""
    steps = [leave_step(settings.host, settings.node_ip)] if state.etcd_member and settings.leave_etcd else []
    if state.has_node:
        steps.append(reset_step(settings.host, settings.cri_socket, settings.timeout))
    if state.leftovers:
        steps.append(Step("Remove " + ", ".join(state.leftovers), lambda: _remove(state.leftovers, settings)))
    return Plan(steps, before=asdict(state), after=asdict(ResetState(files=[], leftovers=[])))


def _remove(leftovers: Sequence[str], settings: ResetSettings) -> None:
    for item in leftovers:
        if item in settings.interfaces:
            # Its processes are gone; where it has gone with them, there is nothing to do.
            run(["ip", "link", "delete", item], timeout=30, ok=(0, 1))
        elif os.path.isdir(item) and not os.path.islink(item):
            shutil.rmtree(item)
        elif os.path.lexists(item):
            os.unlink(item)


def reset_step(host: adm.Host, cri_socket: str, timeout: float) -> Step:
    """Remove a node, or what an interrupted init or join left of one."""

    def reset() -> None:
        adm.require_installed()
        document = {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ResetConfiguration",
            "force": True,
            "criSocket": cri_socket,
            # There may be no API server to ask; kubeadm then goes on with what it finds on the host.
            "timeouts": {"kubernetesAPICall": "5s", "etcdAPICall": "5s"},
        }
        with adm.configuration(document) as path:
            adm.kubeadm(["reset", "--config", path], timeout=timeout)
        remove_pods(cri_socket, timeout)
        # kubeadm finds the data directory through the etcd manifest, which an interrupted reset has removed already.
        shutil.rmtree(os.path.join(host.etcd, "member"), ignore_errors=True)

    return Step("Remove what init or join made on this host (kubeadm reset)", reset)


def remove_pods(cri_socket: str, timeout: float) -> None:
    """Remove the pods that `kubeadm reset` has left: a pod that it cannot stop in time is a warning to it.

    The kubelet of a host that joins again would go on with such a pod where it was, and not write what its first
    containers write, such as the configuration of the network that the reset has removed.

    :raises TrainyardError: pods are still there after `timeout` seconds.
    """
    # Its own two seconds for a request are too few for a busy host.
    crictl = ["crictl", f"--runtime-endpoint={cri_socket}", f"--timeout={CRICTL_TIMEOUT}s"]

    def left() -> list[str]:
        try:
            found = run([*crictl, "pods", "--quiet"], timeout=CRICTL_TIMEOUT).stdout.split()
        except CommandError:
            # As for kubeadm: a runtime that does not run has none.
            return []
        if found:
            with suppress(CommandError):
                run([*crictl, "rmp", "--force", *found], timeout=timeout)
        return found

    try:
        wait_until(left, lambda found: not found, what="the node's pods to go", timeout=timeout, show=", ".join)
    except WaitError as error:
        raise TrainyardError(
            f"kubeadm reset is done, and pods {error.facts['last_state']} of the node are still there.",
            remedy="`crictl pods` on the host shows them, `journalctl -u containerd` why they stay; then reset again.",
        ) from error
