"""What is looked for on a node beside what a role puts there: modes, static pods, certificates, members of etcd."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from cryptography import x509

from tests.unit.certificates import self_signed
from trainyard.core.errors import CommandError
from trainyard.kubeadm import kubelet_findings
from trainyard.kubeadm.etcd import member_findings
from trainyard.kubeadm.kubeadm_program import STATIC_PODS, Host
from trainyard.kubeadm.kubelet_files import plan_modes, wanted_modes
from trainyard.kubeadm.kubelet_findings import (
    certificate_of,
    changed_lines,
    changed_pods,
    dates_of,
    ending,
    unknown_pods,
)

DAY = 86400.0
NOW = 1_800_000_000.0
POD = """\
spec:
  containers:
  - command:
    - etcd
    - --initial-cluster=cp1=https://10.84.0.10:2380
    - --name=cp1
    image: registry.k8s.io/etcd:3.6.14-0
"""


@pytest.mark.parametrize(
    ("path", "mode", "after"),
    [
        ("etc/admin.conf", 0o600, None), ("etc/admin.conf", 0o400, None), ("etc/admin.conf", 0o644, "0600"),
        ("etc/admin.conf", 0o640, "0600"), ("etc/pki/ca.key", 0o604, "0600"), ("etc/pki/etcd/ca.key", 0o660, "0600"),
        ("etc/pki/ca.crt", 0o644, None), ("etc/pki/ca.crt", 0o666, "0644"), ("etc/manifests/etcd.yaml", 0o644, "0600"),
        ("kubelet/kubelet-client.pem", 0o640, "0600"), ("etc/other", 0o777, None),
    ],
)  # fmt: skip
def test_modes(path: str, mode: int, after: str | None, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.touch()
    file.chmod(mode)
    host = Host(etc=str(tmp_path / "etc"))
    wanted = wanted_modes(host, str(tmp_path / "kubelet"))
    plan = plan_modes(wanted, os.getuid())
    assert plan.after == ({f"mode of {file}": after} if after else {})
    plan.execute()
    assert not plan_modes(wanted, os.getuid()).changed


def test_links_and_strangers(tmp_path: Path) -> None:
    (tmp_path / "a.pem").touch(0o600)
    (tmp_path / "current.pem").symlink_to("a.pem")
    plan = plan_modes([(f"{tmp_path}/*.pem", 0o600)], os.getuid() + 1)
    assert plan.before == {f"mode of {tmp_path}/a.pem": f"0600 of user {os.getuid()}"}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (POD, None),
        # Of a member that has joined.
        (POD.replace("10:2380", "10:2380,cp2=https://10.84.0.11:2380").replace(
            "    - --name", "    - --initial-cluster-state=existing\n    - --name"), None),
        (POD.replace("3.6.14", "3.6.8"), tuple(f"image: registry.k8s.io/etcd:{tag}-0" for tag in ("3.6.8", "3.6.14"))),
        (POD.replace("    - --name=cp1\n", ""), ("lines are missing", "- --name=cp1")),
        (POD.replace("    - --name", "    - --debug\n    - --name"), ("- --debug", "without these lines")),
    ],
)  # fmt: skip
def test_a_static_pod(there: str, expected: tuple[str, str] | None) -> None:
    assert changed_lines(there, POD) == expected


def node(folder: Path, *pods: str) -> Host:
    host = Host(etc=str(folder / "etc"), state=str(folder / "state"))
    (folder / "etc/manifests").mkdir(parents=True)
    for name in pods:
        (folder / f"etc/manifests/{name}").write_text(POD)
    return host


FILES = [f"{name}.yaml" for name in STATIC_PODS]


@pytest.mark.parametrize(
    ("pods", "marker", "expected"),
    [
        (FILES, "complete", {}),
        (FILES[1:], "complete", {"etcd.yaml": "missing"}),
        (FILES[1:], "started", {}),
        ([], "complete", {}),
        ([*FILES, "miner.yml"], "complete", {"miner.yml": "there"}),
    ],
)
def test_static_pods(
    pods: list[str], marker: str, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = node(tmp_path, *pods)
    host.set_marker("init", marker)
    monkeypatch.setattr(kubelet_findings.adm, "installed", lambda: True)
    monkeypatch.setattr(kubelet_findings, "rendered", lambda _: dict.fromkeys(STATIC_PODS, POD))
    found = [*unknown_pods(host), *changed_pods(host, [{}])]
    assert {os.path.basename(each.subject): each.before for each in found} == expected


def test_a_configuration_that_kubeadm_refuses_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> dict[str, str]:
        raise CommandError("kubeadm init phase ended with status 1: unknown field")

    monkeypatch.setattr(kubelet_findings.adm, "installed", lambda: True)
    monkeypatch.setattr(kubelet_findings, "rendered", refuse)
    (found,) = changed_pods(node(tmp_path, *FILES), [{}])
    assert "unknown field" in found.before


@pytest.mark.parametrize(
    ("life", "left", "told"),
    [
        (365, 200, None), (365, 30.5, None), (365, 29, "expires in 29 days"), (365, 0.2, "expires in 0 days"),
        (365, -1, "has expired"), (3650, 29, "expires in 29 days"), (10, 5, None), (10, 0.5, "expires in 0 days"),
    ],
)  # fmt: skip
def test_certificates(life: float, left: float, told: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "ca.crt").write_text("no certificate")
    end = NOW + left * DAY
    found = list(ending([f"{tmp_path}/*.crt"], 30, NOW, lambda _: (end - life * DAY, end)))
    assert [each.before for each in found] == ([told] if told else [])
    assert not list(ending([f"{tmp_path}/*.crt"], 30, NOW, lambda _: None))


def test_a_certificate_is_read_where_it_lies() -> None:
    pem = self_signed(days=(-1, 9))[0].encode()
    inside = f"users:\n- user:\n    client-certificate-data: {base64.b64encode(pem).decode()}\n".encode()
    assert certificate_of(b"key before\n" + pem) == pem == certificate_of(inside)
    assert certificate_of(b"apiVersion: v1\n") == certificate_of(b"client-certificate-data: AAA\n") == b""
    life = x509.load_pem_x509_certificate(pem)
    assert dates_of(pem) == (life.not_valid_before_utc.timestamp(), life.not_valid_after_utc.timestamp())
    assert dates_of(b"-----BEGIN CERTIFICATE-----\n") is None


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        (["cp1", "cp2"], ["cp1", "cp2"], []),
        (["cp1"], ["cp1", "cp2"], [("etcd member cp2", "missing")]),
        (["cp1", "old"], ["cp1"], [("etcd member old", "a member")]),
        # Nobody could be asked.
        ([], ["cp1"], []),
    ],
)
def test_members(there: list[str], wanted: list[str], expected: list[tuple[str, str]]) -> None:
    assert [(each.subject, each.before) for each in member_findings(there, wanted)] == expected
