"""Other Kubernetes distributions and remains of a cluster, from trees of files as such hosts have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.host import nftables
from trainyard.host.remains import cni_files, other_distributions, remains


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the commands for rules print, by program; a missing one is not installed or has no tables."""
    printed: dict[str, str] = {}
    monkeypatch.setattr(nftables, "output", lambda argv: printed.get(argv[0], ""))
    return printed


def put(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


@pytest.mark.parametrize(
    ("paths", "cause", "command"),
    [
        (["usr/local/bin/k3s"], "k3s is installed (/usr/local/bin/k3s)", "k3s-uninstall.sh"),
        (["opt/rke2/bin/rke2"], "RKE2 is installed (/opt/rke2/bin/rke2)", "rke2-uninstall.sh"),
        (["var/lib/rancher/rke2/agent/kubelet.kubeconfig"], "RKE2 is installed", "rke2-uninstall.sh"),
        (["snap/bin/microk8s"], "MicroK8s is installed (/snap/bin/microk8s)", "snap remove --purge microk8s"),
        (["usr/local/bin/k0s"], "k0s is installed", "k0s reset"),
    ],
)
def test_another_distribution_is_known_by_its_program(
    tmp_path: Path, paths: list[str], cause: str, command: str
) -> None:
    (found,) = other_distributions(put(tmp_path, *paths))
    assert found.code == "distribution_of_kubernetes"
    assert cause in found.cause and command in found.remedy


def test_a_new_host_has_neither(tmp_path: Path, rules: dict[str, str]) -> None:
    put(tmp_path, "etc/kubernetes/manifests/.kubelet-keep", "sys/class/net/eth0", "snap/bin/docker")
    rules.update({"iptables-save": "*filter\n:DOCKER - [0:0]\n", "nft": "table inet filter\n"})
    assert (other_distributions(tmp_path), remains(tmp_path)) == ([], [])


def test_all_remains_are_one_reason_with_their_commands(tmp_path: Path, rules: dict[str, str]) -> None:
    put(tmp_path, "var/lib/etcd/member/snap/db", "etc/kubernetes/manifests/etcd.yaml", "sys/class/net/kube-ipvs0")
    rules.update({"iptables-save": "*nat\n:KUBE-SERVICES - [0:0]\n", "nft": "table ip kube-proxy\n"})
    (found,) = remains(tmp_path)
    for part in ("/var/lib/etcd", "(etcd.yaml)", "kube-ipvs0", "KUBE- rules", "kube-proxy rules"):
        assert part in found.cause
    for command in (
        "rm -r /var/lib/etcd",
        "rm -r /etc/kubernetes",
        "ip link delete kube-ipvs0",
        "iptables-save | grep -v KUBE- | iptables-restore",
        "nft delete table ip kube-proxy",
    ):
        assert command in found.remedy


@pytest.mark.parametrize(
    "name", ["87-podman-bridge.conflist", "10-containerd-net.conflist", "05-cilium.conflist", "a.conf"]
)
def test_the_network_of_others_is_found(name: str, tmp_path: Path) -> None:
    put(tmp_path, f"etc/cni/net.d/{name}", "etc/cni/net.d/10-calico.conflist", "etc/cni/net.d/README")
    assert cni_files(["/etc/cni/net.d", "/etc/cni/own.d"], tmp_path) == {"/etc/cni/net.d": [name], "/etc/cni/own.d": []}


def test_files_of_calico_are_no_network_of_others(tmp_path: Path) -> None:
    put(tmp_path, "etc/cni/net.d/10-calico.conflist", "etc/cni/net.d/calico-kubeconfig", "etc/cni/net.d/x.bak")
    assert cni_files(["/etc/cni/net.d"], tmp_path) == {"/etc/cni/net.d": []}
