"""The files, pins and programs that the kubeadm modules share."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from trainyard.core.errors import CommandError, TrainyardError, WaitError
from trainyard.kubeadm import kubeadm_program as kubeadm


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def host(tmp_path) -> kubeadm.Host:
    (tmp_path / "etc" / "manifests").mkdir(parents=True)
    return kubeadm.Host(*(str(tmp_path / name) for name in ("etc", "etcd", "state", "config.yaml")))


def test_marker_is_the_last_one_set_and_private(host) -> None:
    assert host.marker("init") == ""
    host.set_marker("init", kubeadm.STARTED)
    assert host.marker("init") == kubeadm.STARTED
    assert host.marker("join") == ""
    assert stat.S_IMODE(os.stat(host.state).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{host.state}/init.started").st_mode) == 0o600
    for state in (kubeadm.COMPLETE, kubeadm.COMPLETE, kubeadm.STARTED):
        host.set_marker("init", state)
        assert host.marker("init") == state
        assert os.listdir(host.state) == [f"init.{state}"]


def test_an_end_that_was_cut_off_counts_as_begun(host) -> None:
    host.store("join.started", "")
    host.store("join.complete", "")
    assert host.marker("join") == kubeadm.STARTED


def test_files(host) -> None:
    Path(host.file("manifests/etcd.yaml")).touch()
    Path(host.file("manifests/mine.yaml")).touch()
    assert host.static_pods() == ("etcd",)
    assert host.present(["admin.conf", "manifests/etcd.yaml"]) == ("manifests/etcd.yaml",)
    assert host.read("pki/ca.crt") == ""
    assert not host.has_etcd_data()
    assert not host.has_kubelet_config()


def test_ignoring_all_preflight_errors_is_refused() -> None:
    kubeadm.refuse_all(["SystemVerification"])
    with pytest.raises(TrainyardError, match="kubernetes_ignore_preflight_errors"):
        kubeadm.refuse_all(["All"])


def test_configuration_is_private_validated_and_gone(programs) -> None:
    program(programs, "kubeadm", f'echo "$@" >> {programs}/calls')
    with kubeadm.configuration({"token": "secret"}) as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert (programs / "calls").read_text() == f"config validate --config {path}\n"
    assert not os.path.exists(path)


def test_an_invalid_configuration_is_refused_with_kubeadms_words(programs) -> None:
    program(programs, "kubeadm", "echo 'unknown field \"colour\"' >&2; exit 1")
    with pytest.raises(CommandError, match="colour"), kubeadm.configuration({"kind": "x"}):
        pass


def test_kubeadm_is_bounded_and_told_what_to_ignore(programs) -> None:
    program(programs, "kubeadm", 'echo "$@"')
    assert kubeadm.kubeadm(["join"], timeout=5, ignore=["A", "B"]) == "join --ignore-preflight-errors=A,B\n"
    program(programs, "kubeadm", "sleep 60")
    with pytest.raises(CommandError, match="did not end"):
        kubeadm.kubeadm(["init"], timeout=0.2)


def test_waiting_for_the_api_gives_the_last_state_to_the_caller() -> None:
    states = iter(["down", "up"])
    assert kubeadm.wait_while(lambda: next(states), lambda state: state == "down", 5) == "up"
    assert kubeadm.wait_while(lambda: "down", lambda state: state == "down", 0) == "down"


def test_another_running_kubeadm_is_waited_for(monkeypatch) -> None:
    # Not this machine's processes: a lab's nodes run on it.
    monkeypatch.setattr(kubeadm, "_processes", lambda name: [])
    kubeadm.wait_for_other_runs(0)
    monkeypatch.setattr(kubeadm, "_processes", lambda name: [42])
    with pytest.raises(WaitError, match="42"):
        kubeadm.wait_for_other_runs(0)


def test_a_node_gets_its_own_resolver_file_by_a_patch(tmp_path: Path) -> None:
    """The cluster's configuration has the file of the host that created it."""
    host = kubeadm.Host(state=str(tmp_path / "state"))
    cluster = {"kind": "ClusterConfiguration"}
    found = kubeadm.with_patches(host, [{"kind": "InitConfiguration"}, cluster], "/run/systemd/resolve/resolv.conf")
    folder = tmp_path / "state" / "patches"
    assert found == [{"kind": "InitConfiguration", "patches": {"directory": str(folder)}}, cluster]
    (patch,) = folder.iterdir()
    # Target and type are parts of the name (kubeadm's option --patches).
    assert patch.name == "kubeletconfiguration+merge.json"
    assert json.loads(patch.read_text(encoding="utf-8")) == {"resolvConf": "/run/systemd/resolve/resolv.conf"}
    (joined,) = kubeadm.with_patches(host, [{"kind": "JoinConfiguration"}], "/etc/resolv.conf")
    assert joined["patches"]["directory"] == str(folder)
    assert json.loads(patch.read_text(encoding="utf-8")) == {"resolvConf": "/etc/resolv.conf"}
