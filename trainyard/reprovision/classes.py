"""Which class an item has: one table, read from above, the first row that fits; what no row knows is for a person."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from .item import CONTROL_PLANE, FOREIGN, PERSON, REPAIRABLE, RESTART

UNKNOWN = "nothing here knows whether a schedule may repair this"
UPGRADE = "another version of what runs is an upgrade, and the upgrade verb is not built yet"
LIVING = "no verb changes a living control plane yet"
NEW_KEYS = "new keys or certificates may lock hosts out: look why those that were there are gone or end"
MEMBER = "who is a member of the cluster is decided by a person: look why it is none, then run site.yml"
DRIVER = "a driver is changed with playbooks/gpu_driver.yml, which may restart the host"
FILES = "what holds the files of runs is not made anew without a person"
MADE = "artefacts are made by a run of site.yml, not by a schedule"
TRAINS = "whether a training runs again is decided by a person: run site.yml"
OTHER_IMAGE = "the tag names another image than the lock: look who has pushed it"
NOBODYS = "no run renders it: find who needs it, then remove it, or list it in control_plane_accepted_findings"
NODE = "which hosts are nodes is decided by a person: mend the inventory, run site.yml, or take the node out"
KEPT_FREE = "somebody keeps pods away from this node: ask why before it is given back"
CLUSTERS = "the cluster's own configuration is not the inventory's, and no verb changes a living control plane yet"
EXPIRY = "kubelets renew theirs by themselves, kubeadm its own with an upgrade: look why this one was not, and do it"
RUNTIME = "a file of somebody else changes how containers run: look why it is there, then remove it"
STRANGER = "somebody has edited what belongs to a package or to kubeadm: look why, then put it back"
MASKED = "somebody has forbidden it to run: ask why, then `systemctl unmask` it"
ROOM = "a node whose disk is full loses its pods: look what fills it"
QUORUM = "who is a member of etcd decides about the quorum: look at the others first"
AWS = "what costs money or holds files at AWS is changed with playbooks/efs.yml"


@dataclass(frozen=True)
class Row:
    """Patterns of an item, as file names have them, and its class.

    :param before: pattern of what is there.
    :param reason: why a person, for the classes that are not repaired.
    """

    kind: str
    role: str = "*"
    module: str = "*"
    subject: str = "*"
    before: str = "*"
    reason: str = ""

    def fits(self, role: str, module: str, subject: str, before: str) -> bool:
        pairs = ((role, self.role), (module, self.module), (subject, self.subject), (before, self.before))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


TABLE = (
    # Units, whichever role keeps them: starting what is stopped disturbs nothing that runs.
    Row(REPAIRABLE, module="systemd_unit", subject="* enabled"),
    Row(REPAIRABLE, module="systemd_unit", subject="* running"),
    Row(REPAIRABLE, module="systemd_unit", subject="* units"),
    Row(REPAIRABLE, "base", "systemd_unit", "* restart"),
    Row(RESTART, module="systemd_unit", subject="containerd.service restart"),
    Row(RESTART, module="systemd_unit", subject="kubelet.service restart"),
    Row(RESTART, module="systemd_unit", subject="docker.service restart"),
    Row(RESTART, "mirror", "systemd_unit", "* restart"),
    Row(PERSON, module="systemd_unit", subject="* masked", reason=MASKED),
    Row(PERSON, "base", "host_preflight", reason=ROOM),
    # Packages: a hold changes nothing that runs; a package below a service restarts it.
    Row(REPAIRABLE, module="apt_packages", subject="hold of *"),
    Row(REPAIRABLE, "base", "apt_packages"),
    Row(PERSON, "nvidia_driver", "apt_packages", reason=DRIVER),
    Row(RESTART, "containerd", "apt_packages"),
    Row(RESTART, "docker", "apt_packages"),
    Row(RESTART, "kubernetes", "apt_packages", before="missing"),
    Row(PERSON, "kubernetes", "apt_packages", reason=UPGRADE),
    Row(RESTART, "mirror", "apt_packages"),
    Row(RESTART, "nvidia_runtime", "apt_packages"),
    Row(REPAIRABLE, "efs_mount", "apt_packages"),
    Row(REPAIRABLE, "storage", "apt_packages"),
    # Files of hosts: what a service reads only at its start restarts it.
    Row(REPAIRABLE, "base", "host_files"),
    Row(REPAIRABLE, "base", "kernel_settings"),
    Row(RESTART, "*", "host_files", "/etc/containerd/config.toml"),
    Row(RESTART, "*", "host_files", "/etc/containerd/conf.d/*"),
    Row(REPAIRABLE, "containerd", "host_files"),
    Row(RESTART, "docker", "host_files", "/etc/docker/daemon.json"),
    Row(REPAIRABLE, "docker", "host_files"),
    Row(CONTROL_PLANE, "*", "host_files", "/etc/kubernetes/manifests/*", reason=LIVING),
    Row(RESTART, "kubernetes", "host_files", "/var/lib/kubelet/*"),
    Row(RESTART, "kubernetes", "host_files", "/etc/systemd/system/kubelet.service.d/*"),
    Row(RESTART, "mirror", "host_files"),
    Row(REPAIRABLE, "nvidia_runtime", "host_files"),
    Row(REPAIRABLE, "nvidia_runtime", "systemd_service"),
    Row(REPAIRABLE, "nvidia_runtime", "command"),
    Row(PERSON, "nvidia_driver", reason=DRIVER),
    Row(REPAIRABLE, "efs_mount", "host_files"),
    Row(REPAIRABLE, "efs_mount", "mount_unit"),
    # kubeadm
    Row(REPAIRABLE, "*", "kubeadm_*", "mode of *"),
    Row(CONTROL_PLANE, "*", "kubeadm_init", "kubeadm configuration", reason=LIVING),
    Row(CONTROL_PLANE, "*", "kubeadm_init", reason=LIVING),
    Row(PERSON, "*", "kubeadm_join", reason=MEMBER),
    Row(REPAIRABLE, "*", "kubelet_certificates"),
    Row(REPAIRABLE, "control_plane", "file"),
    Row(REPAIRABLE, "control_plane", "copy"),
    # What was looked for on hosts, beside what a role puts there
    Row(REPAIRABLE, "*", "node_files", "mode of *"),
    Row(RESTART, "*", "node_files", "/var/lib/kubelet/config.yaml"),
    Row(RESTART, "*", "node_files", "kubelet.service"),
    Row(CONTROL_PLANE, "*", "node_files", "ConfigMap *", reason=CLUSTERS),
    Row(PERSON, "*", "node_findings", "certificate *", reason=EXPIRY),
    Row(PERSON, "*", "node_findings", "etcd member *", reason=QUORUM),
    Row(FOREIGN, "*", "node_findings", before="there", reason=NOBODYS),
    Row(CONTROL_PLANE, "*", "node_findings", "/etc/kubernetes/manifests/*", reason=LIVING),
    Row(PERSON, "*", "node_findings", "containerd *", reason=RUNTIME),
    Row(PERSON, "*", "node_findings", reason=STRANGER),
    # What was looked for in the cluster
    Row(REPAIRABLE, "*", "node_marks"),
    Row(CONTROL_PLANE, "*", "cluster_findings", "ConfigMap *", reason=CLUSTERS),
    Row(PERSON, "*", "cluster_findings", "Node *", "missing", NODE),
    Row(FOREIGN, "*", "cluster_findings", "Node *", reason=NODE),
    Row(PERSON, "*", "cluster_findings", "cordon of *", reason=KEPT_FREE),
    Row(PERSON, "*", "cluster_findings", "taint *", reason=KEPT_FREE),
    Row(REPAIRABLE, "*", "cluster_findings", "record of *"),
    Row(FOREIGN, "*", "cluster_findings", reason=NOBODYS),
    # The mirror
    Row(REPAIRABLE, "mirror", "oci_push", before="missing"),
    Row(PERSON, "mirror", "oci_push", reason=OTHER_IMAGE),
    Row(PERSON, "mirror", "openssl_*", reason=NEW_KEYS),
    Row(PERSON, "mirror", "x509_certificate", reason=NEW_KEYS),
    Row(PERSON, "mirror", "command", reason=NEW_KEYS),
    Row(REPAIRABLE, "mirror", "file"),
    Row(REPAIRABLE, "mirror", "copy"),
    Row(REPAIRABLE, "mirror", "unarchive"),
    # Objects of the cluster
    Row(CONTROL_PLANE, "*", "kube_apply", "ConfigMap kube-system/kubeadm-config", reason=LIVING),
    Row(CONTROL_PLANE, "*", "kube_apply", "ConfigMap kube-system/kubelet-config", reason=LIVING),
    # The one that all trainings share; the roles dashboard and workloads apply it as well.
    Row(REPAIRABLE, "storage", "kube_apply", "Namespace *"),
    Row(REPAIRABLE, "storage", "kube_apply", "record of *"),
    Row(PERSON, "storage", "kube_apply", reason=FILES),
    Row(REPAIRABLE, "network", "kube_apply"),
    Row(REPAIRABLE, "metrics", "kube_apply"),
    Row(PERSON, "metrics", "openssl_*", reason=NEW_KEYS),
    Row(PERSON, "metrics", "x509_certificate", reason=NEW_KEYS),
    Row(REPAIRABLE, "metrics", "file"),
    Row(REPAIRABLE, "dashboard", "kube_apply"),
    Row(REPAIRABLE, "dashboard", "kube_prune"),
    Row(PERSON, "dashboard", "openssl_*", reason=NEW_KEYS),
    Row(PERSON, "dashboard", "x509_certificate", reason=NEW_KEYS),
    Row(REPAIRABLE, "dashboard", "file"),
    Row(REPAIRABLE, "device_plugin", "kube_apply"),
    Row(REPAIRABLE, "device_plugin", "k8s"),
    Row(REPAIRABLE, "*", "containerd_images"),
    Row(REPAIRABLE, "workloads", "kube_apply"),
    Row(PERSON, "workloads", "training", "run of *", reason=TRAINS),
    Row(REPAIRABLE, "workloads", "training"),
    Row(REPAIRABLE, "workloads", "host_files"),
    Row(REPAIRABLE, "workloads", "kube_prune"),
    Row(REPAIRABLE, "workloads", "oci_push"),
    Row(PERSON, "workloads", "code_image", reason=MADE),
    Row(PERSON, "storage", reason=FILES),
    # The controller
    Row(REPAIRABLE, "base", "signing_key"),
    Row(PERSON, "bundle", reason=MADE),
    Row(PERSON, "efs", reason=AWS),
)


def class_of(role: str, module: str, subject: str, before: str) -> tuple[str, str]:
    """The class of an item, and why it is left to a person.

    :param module: name without its collection.
    :param before: what is there, as the report shows it.
    """
    for row in TABLE:
        if row.fits(role, module, subject, before):
            return row.kind, row.reason
    return PERSON, UNKNOWN
