"""Find other Kubernetes distributions on a host, and the remains of a cluster that was removed incompletely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from . import nftables
from .preflight_checks import Reason, reason

DISTRIBUTIONS = (
    ("k3s", ("usr/local/bin/k3s", "var/lib/rancher/k3s/agent"), "/usr/local/bin/k3s-uninstall.sh"),
    ("RKE2", ("usr/local/bin/rke2", "opt/rke2/bin/rke2", "var/lib/rancher/rke2/agent"),
     "/usr/local/bin/rke2-uninstall.sh"),
    ("MicroK8s", ("snap/bin/microk8s", "var/snap/microk8s/current"), "snap remove --purge microk8s"),
    ("k0s", ("usr/local/bin/k0s", "var/lib/k0s/pki"), "k0s stop; k0s reset"),
)  # fmt: skip
"""Distributions that bring their own kubelet and CNI: name, paths of program and data, command that removes it.

Sources: docs.k3s.io/installation/uninstall, docs.rke2.io/install/uninstall, microk8s.io/docs, docs.k0sproject.io."""

INTERFACES = ("kube-ipvs0", "vxlan.calico", "flannel.1", "cilium_host", "cilium_vxlan", "weave")
"""Interfaces of kube-proxy and of network plugins, which stay until the host restarts. Containerd's own example network
has cni0, too, so that name proves nothing."""

RULES = (("iptables-save", "KUBE-"), ("iptables-legacy-save", "KUBE-"), ("nft list tables", "kube-proxy"))
"""Commands that print firewall rules, and the mark of kube-proxy's."""


def other_distributions(root: Path = Path("/")) -> list[Reason]:
    """Return a reason for each other Kubernetes distribution on the host."""
    found = []
    for name, paths, command in DISTRIBUTIONS:
        path = next((each for each in paths if (root / each).exists()), None)
        if path:
            found.append(reason("distribution_of_kubernetes", name=name, path=f"/{path}", command=command))
    return found


CNI_ENDINGS = (".conf", ".conflist", ".json")
"""The first of these files, in the order of names, configures the network of pods (go-cni, `WithDefaultConf`)."""
CALICO = "10-calico.conflist"


def cni_files(folders: Iterable[str], root: Path = Path("/")) -> dict[str, list[str]]:
    """Return folder -> files with which programs of others configure the network of pods.

    In the cluster's folder they would do harm: before Calico runs, a new node would be ready, and its first pods would
    get addresses of that network. A file with a name before Calico's would even remain in use.
    """
    found = {}
    for folder in folders:
        files = (root / folder.lstrip("/")).glob("*")
        found[folder] = sorted(path.name for path in files if path.suffix in CNI_ENDINGS and path.name != CALICO)
    return found


def remains(root: Path = Path("/")) -> list[Reason]:
    """Return why a host that is no node cannot become one: it has state of an earlier cluster.

    Call it only for a host that belongs to no cluster and that this project has not changed before.
    """
    found = [*_files(root), *_links(root), *_rules()]
    if not found:
        return []
    commands = "; ".join(dict.fromkeys(command for _, command in found))
    return [reason("remains", found=", ".join(what for what, _ in found), commands=commands)]


def _files(root: Path) -> Iterator[tuple[str, str]]:
    if (root / "var/lib/etcd/member").exists():
        yield "an etcd database in /var/lib/etcd", "rm -r /var/lib/etcd"
    manifests = sorted(path.name for path in root.glob("etc/kubernetes/manifests/*.yaml"))
    if manifests:
        yield f"static pods in /etc/kubernetes/manifests ({', '.join(manifests)})", "rm -r /etc/kubernetes"


def _links(root: Path) -> Iterator[tuple[str, str]]:
    for name in INTERFACES:
        if (root / "sys/class/net" / name).exists():
            yield f"the interface {name}", f"ip link delete {name}"


def _rules() -> Iterator[tuple[str, str]]:
    for command, mark in RULES:
        if mark in nftables.output(command.split()):
            save = command.partition(" ")[0]
            remove = f"{save} | grep -v KUBE- | {save.replace('save', 'restore')}" if "iptables" in save else ""
            yield f"{mark} rules in the output of `{command}`", remove or f"nft delete table ip {mark}"
