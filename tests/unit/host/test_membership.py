"""host_preflight: a host that is a node of another cluster is refused, with both clusters named."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import pytest

from trainyard.host.cluster_membership import Cluster, look, problems
from trainyard.host.ownership import MARKER


def pem(der: bytes) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(der).decode()}-----END CERTIFICATE-----\n"


OURS, THEIRS = pem(b"our authority"), pem(b"their authority")
HERE, THERE = "https://10.0.0.1:6443", "https://10.9.9.9:6443"
SITE = Cluster("/site/kubeconfig", "kubernetes", HERE, frozenset({hashlib.sha256(b"our authority").hexdigest()}))
NONE = Cluster("/site/kubeconfig")
KUBECONFIG = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: {name}
contexts:
- context:
    cluster: {name}
    user: system:node:w1
  name: system:node:w1@{name}
kind: Config
"""


def kubeconfig(ca: str, server: str = THERE, name: str = "theirs") -> str:
    return KUBECONFIG.format(ca=base64.b64encode(ca.encode()).decode(), server=server, name=name)


def host(root: Path, **files: str) -> Path:
    """A host with these files, by the names that they have here."""
    for name, text in files.items():
        path = root / PATHS[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


PATHS = {
    "kubelet": "etc/kubernetes/kubelet.conf",
    "admin": "etc/kubernetes/admin.conf",
    "ca": "etc/kubernetes/pki/ca.crt",
    "rke2": "var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "k3s": "var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "rke2_ca": "var/lib/rancher/rke2/agent/server-ca.crt",
    "drop_in": "etc/containerd/conf.d/10-trainyard.toml",
    "made": "var/lib/trainyard/kubeadm/init.yaml",
    "started": "var/lib/trainyard/kubeadm/init.started",
    "joined": "var/lib/trainyard/kubeadm/join.complete",
}
RANCHER = KUBECONFIG.replace("-data: {ca}", ": /var/lib/rancher/rke2/agent/server-ca.crt").format(
    server=THERE, name="r"
)


@pytest.mark.parametrize(
    "files",
    [
        {},
        # kubeadm's leftovers of a host that has left its cluster
        {"ca": THEIRS, "drop_in": "x"},
        {"kubelet": kubeconfig(OURS)},
        {"kubelet": kubeconfig(OURS, "https://[fd00::1]:6443"), "ca": OURS},
        # One of two authorities, while they change over; the other file is renewed first.
        {"kubelet": kubeconfig(THEIRS + OURS)},
        {"kubelet": kubeconfig(THEIRS), "ca": OURS},
        {"kubelet": "server: x\ncertificate-authority: pki/ca.crt\n", "ca": OURS},
        # Cut off in a power cut, on a host of ours: the roles that come later say what to do.
        {"kubelet": "", "drop_in": f"# {MARKER}\n"},
        # The run that made the cluster again was killed before it fetched the kubeconfig.
        {"admin": kubeconfig(THEIRS, HERE), "started": ""},
        {"kubelet": kubeconfig(THEIRS, HERE), "made": "{}"},
        {"kubelet": kubeconfig(THEIRS, "https://10.0.0.7:6443"), "admin": kubeconfig(THEIRS, HERE), "made": "{}"},
    ],
)  # fmt: skip
def test_hosts_that_are_taken(files: dict[str, str], tmp_path: Path) -> None:
    assert problems(look(str(host(tmp_path, **files))), SITE) == []


@pytest.mark.parametrize(
    "files",
    [
        {"kubelet": kubeconfig(THEIRS)},
        {"kubelet": kubeconfig(THEIRS), "joined": "", "drop_in": f"# {MARKER}\n"},
        {"kubelet": '{"clusters":[{"name":"theirs","cluster":{"server":"' + THERE + '"}}]}'},
        # A control plane host that has lost its kubelet's credentials, and one of another site of this project
        {"admin": kubeconfig(THEIRS)},
        {"kubelet": kubeconfig(THEIRS), "made": "{}"},
        {"rke2": RANCHER.replace("name: r", "name: theirs"), "rke2_ca": THEIRS},
        {"k3s": kubeconfig(THEIRS)},
    ],
)
def test_a_node_of_another_cluster_is_refused_with_both_named(files: dict[str, str], tmp_path: Path) -> None:
    (problem,) = map(str, problems(look(str(host(tmp_path, **files))), SITE))
    assert f"theirs at {THERE}" in problem and f"kubernetes at {HERE}" in problem and "/site/kubeconfig" in problem
    assert "bundle.lock.yml" not in problem and "out of the inventory" in problem


def test_a_worker_of_the_cluster_before_is_told_that_a_reset_is_enough(tmp_path: Path) -> None:
    files = {"kubelet": kubeconfig(THEIRS, HERE), "drop_in": f"# {MARKER}\n"}
    (problem,) = map(str, problems(look(str(host(tmp_path, **files))), SITE))
    assert "was created again, reset this host (reset.yml): nothing else is needed." in problem


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        ({}, False),
        ({"kubelet": kubeconfig(THEIRS)}, True),
        ({"kubelet": kubeconfig(THEIRS), "drop_in": "version = 3\n"}, True),
        ({"admin": kubeconfig(THEIRS)}, True),
        ({"rke2": RANCHER}, True),
        # The controller has lost the kubeconfig of a site that is there.
        ({"kubelet": kubeconfig(THEIRS), "drop_in": f"# {MARKER}\n"}, False),
        ({"kubelet": kubeconfig(THEIRS), "made": "{}"}, False),
        ({"kubelet": kubeconfig(THEIRS), "joined": ""}, False),
        ({"admin": kubeconfig(THEIRS), "started": ""}, False),
    ],
)
def test_without_a_kubeconfig_the_record_on_the_host_decides(
    files: dict[str, str], refused: bool, tmp_path: Path
) -> None:
    found = [str(each) for each in problems(look(str(host(tmp_path, **files))), NONE)]
    assert bool(found) == refused
    assert not found or ("/site/kubeconfig" in found[0] and "bundle.lock.yml" not in found[0])


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 4096,
        "clusters: \x1b]0;gone\x07\nserver: \x1b[2J\x1b[31mhttps://x\u202e\nname: " + "n" * 10_000,
        "certificate-authority: /dev/zero\nserver: https://x",
        "certificate-authority: ../../../../../../proc/self/environ\x00\nserver: https://x",
        "certificate-authority-data: " + "A" * 2_000_000,
        "certificate-authority-data: %%%\nclusters: [[[[[[",
        "server:\n" * 50_000,
    ],
)
def test_a_hostile_kubeconfig_is_no_more_than_another_cluster(text: str, tmp_path: Path) -> None:
    (problem,) = map(str, problems(look(str(host(tmp_path, kubelet=text))), SITE))
    assert problem.isprintable() and len(problem) < 1_500


def test_a_named_pipe_does_not_hold_the_reader(tmp_path: Path) -> None:
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    os.mkfifo(tmp_path / "etc/kubernetes/kubelet.conf")
    (problem,) = map(str, problems(look(str(tmp_path)), SITE))
    assert "CA unknown" in problem
