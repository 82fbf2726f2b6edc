"""The classes that roles declare: one case for each row, and items without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.drift.items import CLASSES, CONTROL_PLANE, FOREIGN, PERSON, REPAIRABLE, RESTART, UNKNOWN, class_of, table

CONF = "/etc/containerd/conf.d/10-trainyard.toml"
KUBEADM = "ConfigMap kube-system/kubeadm-config"
CASES = [
    (REPAIRABLE, "containerd", "systemd_unit", "containerd.service enabled", "disabled"),
    (REPAIRABLE, "kubernetes", "systemd_unit", "kubelet.service running", "stopped"),
    (REPAIRABLE, "docker", "systemd_unit", "docker.service units", ""),
    (REPAIRABLE, "base", "systemd_unit", "chrony.service restart", ""),
    (RESTART, "nvidia_runtime", "systemd_unit", "containerd.service restart", ""),
    (RESTART, "kubernetes", "systemd_unit", "kubelet.service restart", ""),
    (RESTART, "docker", "systemd_unit", "docker.service restart", ""),
    (RESTART, "mirror", "systemd_unit", "nginx.service restart", ""),
    (PERSON, "containerd", "systemd_unit", "containerd.service masked", "masked"),
    (PERSON, "base", "host_preflight", "space on /var/lib", "120 MiB free"),
    (REPAIRABLE, "kubernetes", "apt_packages", "hold of kubelet", "not held"),
    (REPAIRABLE, "base", "apt_packages", "package socat", "missing"),
    (PERSON, "nvidia_driver", "apt_packages", "package nvidia-driver", "550"),
    (RESTART, "containerd", "apt_packages", "package containerd.io", "2.3.3-1"),
    (RESTART, "docker", "apt_packages", "package docker-ce", "missing"),
    (RESTART, "kubernetes", "apt_packages", "package cri-tools", "missing"),
    (PERSON, "kubernetes", "apt_packages", "package kubelet", "1.36.1-1"),
    (RESTART, "mirror", "apt_packages", "package nginx", "missing"),
    (RESTART, "nvidia_runtime", "apt_packages", "package nvidia-container-toolkit", "missing"),
    (REPAIRABLE, "efs_mount", "apt_packages", "package nfs-common", "missing"),
    (REPAIRABLE, "storage", "apt_packages", "package nfs-common", "missing"),
    (REPAIRABLE, "firewall", "host_firewall", "nftables table inet trainyard", "other rules"),
    (REPAIRABLE, "firewall", "systemd_unit", "trainyard-firewall.service restart", ""),
    (REPAIRABLE, "firewall", "apt_packages", "package nftables", "missing"),
    (REPAIRABLE, "firewall", "host_files", "/etc/systemd/system/trainyard-firewall.service", ""),
    (REPAIRABLE, "kubernetes", "host_files", "/etc/systemd/system/trainyard-routes.service", ""),
    (REPAIRABLE, "kubernetes", "systemd_unit", "trainyard-routes.service restart", ""),
    (REPAIRABLE, "base", "host_files", "/etc/hosts", ""),
    (REPAIRABLE, "base", "kernel_settings", "sysctl net.ipv4.ip_forward", "0"),
    (RESTART, "containerd", "host_files", "/etc/containerd/config.toml", ""),
    (RESTART, "nvidia_runtime", "host_files", CONF, ""),
    (REPAIRABLE, "containerd", "host_files", "/etc/containerd/certs.d/docker.io/hosts.toml", ""),
    (RESTART, "docker", "host_files", "/etc/docker/daemon.json", ""),
    (RESTART, "docker", "host_files", "/etc/trainyard/docker/proxy.env", ""),
    (RESTART, "docker", "host_files", "/etc/systemd/system/docker.service.d/trainyard-proxy.conf", ""),
    (RESTART, "containerd", "host_files", "/etc/trainyard/containerd/proxy.env", ""),
    (RESTART, "containerd", "host_files", "/etc/systemd/system/containerd.service.d/trainyard-proxy.conf", ""),
    (REPAIRABLE, "docker", "host_files", "/etc/docker/certs.d/mirror:5000/ca.crt", ""),
    (CONTROL_PLANE, "control_plane", "host_files", "/etc/kubernetes/manifests/kube-apiserver.yaml", ""),
    (RESTART, "kubernetes", "host_files", "/var/lib/kubelet/config.yaml", ""),
    (RESTART, "kubernetes", "host_files", "/etc/systemd/system/kubelet.service.d/20-trainyard.conf", ""),
    (RESTART, "mirror", "host_files", "/etc/trainyard/mirror/nginx.conf", ""),
    (REPAIRABLE, "nvidia_runtime", "host_files", "/etc/systemd/system/nvidia-cdi-refresh.service.d/20.conf", ""),
    (REPAIRABLE, "nvidia_runtime", "systemd_service", "nvidia-cdi-refresh.path", ""),
    (REPAIRABLE, "nvidia_runtime", "command", "systemctl start nvidia-cdi-refresh.service", ""),
    (PERSON, "nvidia_driver", "host_files", "/etc/apt/preferences.d/nvidia", ""),
    (REPAIRABLE, "efs_mount", "host_files", "/etc/udev/rules.d/99-nfs.rules", ""),
    (REPAIRABLE, "efs_mount", "mount_unit", "mount /mnt/shared", ""),
    (REPAIRABLE, "control_plane", "kubeadm_init", "mode of /var/lib/kubelet/config.yaml", ""),
    (CONTROL_PLANE, "control_plane", "kubeadm_init", "membership of the cluster", "missing"),
    (PERSON, "kubernetes", "kubeadm_join", "membership of the cluster", "missing"),
    (REPAIRABLE, "kubernetes", "kubelet_certificates", "certificate of csr-1", "pending"),
    (REPAIRABLE, "control_plane", "file", "/site", "state: missing"),
    (REPAIRABLE, "control_plane", "copy", "kubeconfig", ""),
    (REPAIRABLE, "kubernetes", "node_files", "mode of /etc/kubernetes/admin.conf", "0644"),
    (RESTART, "kubernetes", "node_files", "/var/lib/kubelet/config.yaml", "maxPods: 5"),
    (RESTART, "kubernetes", "node_files", "kubelet.service", "older than its configuration"),
    (CONTROL_PLANE, "kubernetes", "node_files", "ConfigMap kube-system/kubelet-config", "edited by kubectl-edit"),
    (PERSON, "kubernetes", "node_findings", "certificate /etc/kubernetes/admin.conf", "ends in 12 days"),
    (PERSON, "control_plane", "node_findings", "etcd member cp2", "missing"),
    (FOREIGN, "kubernetes", "node_findings", "/etc/containerd/conf.d/99-mine.toml", "there"),
    (CONTROL_PLANE, "control_plane", "node_findings", "/etc/kubernetes/manifests/etcd.yaml", "--profiling"),
    (PERSON, "kubernetes", "node_findings", "containerd SystemdCgroup", "false"),
    (PERSON, "kubernetes", "node_findings", "/usr/lib/systemd/system/kubelet.service", "edited"),
    (REPAIRABLE, "control_plane", "node_marks", "taint node-role/x:NoSchedule of node cp1", "missing"),
    (CONTROL_PLANE, "control_plane", "cluster_findings", "ConfigMap kube-system/kubelet-config maxPods", "5"),
    (PERSON, "control_plane", "cluster_findings", "Node worker2", "missing"),
    (FOREIGN, "control_plane", "cluster_findings", "Node laptop", "in the cluster"),
    (PERSON, "control_plane", "cluster_findings", "cordon of node worker1", "cordoned by hand"),
    (PERSON, "control_plane", "cluster_findings", "taint mine:NoExecute of node worker1", "set"),
    (REPAIRABLE, "control_plane", "cluster_findings", "record of what is rendered", "lacks network"),
    (REPAIRABLE, "storage", "kube_apply", "record of what storage renders", "missing"),
    (FOREIGN, "control_plane", "cluster_findings", "ClusterRoleBinding evil", "cluster-admin for User eve"),
    (REPAIRABLE, "mirror", "oci_push", "image a:1", "missing"),
    (PERSON, "mirror", "oci_push", "image a:1", "sha256:1"),
    (PERSON, "mirror", "openssl_privatekey", "ca.key", ""),
    (PERSON, "mirror", "x509_certificate", "ca.crt", ""),
    (PERSON, "mirror", "command", "gpg --quick-generate-key", ""),
    (REPAIRABLE, "mirror", "file", "/srv/mirror/apt-1", ""),
    (REPAIRABLE, "mirror", "copy", "/srv/mirror/files/a", ""),
    (REPAIRABLE, "mirror", "unarchive", "/srv/mirror/apt-1", ""),
    (CONTROL_PLANE, "control_plane", "kube_apply", KUBEADM, ""),
    (CONTROL_PLANE, "kubernetes", "kube_apply", "ConfigMap kube-system/kubelet-config", ""),
    (REPAIRABLE, "storage", "kube_apply", "Namespace trainings", "-"),
    (PERSON, "storage", "kube_apply", "PersistentVolumeClaim trainings/training", "missing"),
    (REPAIRABLE, "network", "kube_apply", "Deployment kube-system/coredns", ""),
    (REPAIRABLE, "metrics", "kube_apply", "Deployment kube-system/metrics-server", ""),
    (PERSON, "metrics", "openssl_privatekey", "metrics/server.key", "missing"),
    (PERSON, "metrics", "x509_certificate", "metrics/server.crt", ""),
    (REPAIRABLE, "metrics", "file", "metrics", "state: missing"),
    (REPAIRABLE, "dashboard", "kube_apply", "Role a/b", ""),
    (REPAIRABLE, "dashboard", "kube_prune", "Role a/b", "there"),
    (PERSON, "dashboard", "openssl_csr", "console.csr", ""),
    (PERSON, "dashboard", "x509_certificate", "console.crt", ""),
    (REPAIRABLE, "dashboard", "file", "/site/console", ""),
    (REPAIRABLE, "device_plugin", "kube_apply", "Node worker1", ""),
    (REPAIRABLE, "device_plugin", "k8s", "DaemonSet gpu/plugin", ""),
    (REPAIRABLE, "workloads", "containerd_images", "image a:1", "no"),
    (REPAIRABLE, "workloads", "kube_apply", "Deployment jobset-system/jobset-controller-manager", ""),
    (PERSON, "workloads", "training", "run of mnist-ps", ""),
    (REPAIRABLE, "workloads", "training", "NetworkPolicy trainings/default-deny", "missing"),
    (REPAIRABLE, "workloads", "host_files", "/var/lib/trainyard/trainings", ""),
    (REPAIRABLE, "workloads", "kube_prune", "ResourceQuota a/trainyard", "there"),
    (REPAIRABLE, "workloads", "oci_push", "image code:1", "missing"),
    (PERSON, "workloads", "code_image", "code", ""),
    (PERSON, "storage", "file", "/mnt/shared/training", ""),
    (REPAIRABLE, "base", "signing_key", "key", ""),
    (PERSON, "bundle", "bundle", "pause", ""),
    (PERSON, "efs", "efs_file_system", "fs-1", ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "role", "module", "subject", "before"), CASES)
def test_class(kind: str, role: str, module: str, subject: str, before: str) -> None:
    found, reason = class_of(role, module, subject, before)
    assert found == kind
    assert bool(reason) == (kind not in (REPAIRABLE, RESTART)), "who is to look must know why"


def test_each_row_has_its_case() -> None:
    """A row that is never the first that fits is dead."""
    chosen = [next(row for row in table() if row.fits(*case[1:])) for case in CASES]
    assert [row for row in table() if row not in chosen] == []


@pytest.mark.parametrize(
    ("role", "module", "subject"),
    [("", "command", "true"), ("new_role", "host_files", "/etc/x"), ("lab", "lab", "cp1"), ("base", "shell", "x"),
     ("workloads", "systemd_unit", "other.service restart"), ("new_role", "kube_apply", "Secret a/b")],
)  # fmt: skip
def test_what_no_row_knows_is_for_a_person(role: str, module: str, subject: str) -> None:
    assert class_of(role, module, subject, "") == (PERSON, UNKNOWN)


def test_classes_are_those_of_items() -> None:
    assert {row.kind for row in table()} <= set(CLASSES)


@pytest.mark.parametrize(
    "row",
    ["{class: mine}", "{class: person}", "{class: repairable, reason: x}", "{class: repairable, modul: x}",
     "{class: repairable, subject: 5}", "{module: x}"],
)  # fmt: skip
def test_a_row_of_another_form_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "toys/meta/provides.yml"
    path.parent.mkdir(parents=True)
    path.write_text(f"drift:\n  - {row}\n")
    with pytest.raises(TrainyardError, match="declares an invalid row of drift"):
        table(tmp_path)


def test_a_row_for_everywhere_comes_first_and_others_are_of_their_role(tmp_path: Path) -> None:
    for role, text in (
        ("a", "drift:\n  - {class: repairable, module: m}\n"),
        (
            "b",
            "drift:\n  - {class: restart, module: m, subject: x, everywhere: true}\n  - {class: restart, module: n}\n",
        ),
    ):
        (tmp_path / role / "meta").mkdir(parents=True)
        (tmp_path / role / "meta/provides.yml").write_text(text)
    assert [(row.role, row.module, row.subject) for row in table(tmp_path)] == [
        ("*", "m", "x"), ("a", "m", "*"), ("b", "n", "*"),
    ]  # fmt: skip
