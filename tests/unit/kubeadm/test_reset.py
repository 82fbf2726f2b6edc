"""What kubeadm_reset removes, and whom it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.kubeadm import reset
from trainyard.kubeadm.kubeadm_program import Host


@pytest.fixture
def settings(tmp_path, monkeypatch) -> reset.ResetSettings:
    """A host whose kubeadm does nothing and whose kubectl is there."""
    # No pods, as crictl says it.
    for name in ("kubeadm", "kubectl", "crictl"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(reset, "INTERFACES", str(tmp_path / "net"))
    host = Host(*(str(tmp_path / name) for name in ("etc", "etcd", "state", "config.yaml")))
    return reset.ResetSettings(paths=[str(tmp_path / "calico"), str(tmp_path / "conflist")], timeout=5, host=host)


def steps(settings: reset.ResetSettings) -> list[str]:
    return [step.what for step in reset.make_plan(reset.observe(settings), settings).steps]


@pytest.mark.parametrize(("confirmed", "accepted"), [(["a", " cp1"], True), ([], False), (["cp11", "cp"], False)])
def test_only_a_named_host_is_reset(confirmed: list[str], accepted: bool) -> None:
    if accepted:
        reset.require_confirmation("cp1", confirmed)
    else:
        with pytest.raises(TrainyardError, match="kubernetes_reset_confirm"):
            reset.require_confirmation("cp1", confirmed)


def test_a_host_without_anything_is_left_alone(settings) -> None:
    (Path(settings.host.etc) / "manifests").mkdir(parents=True)
    (Path(settings.host.etc) / "pki").mkdir()
    assert steps(settings) == []


@pytest.mark.parametrize("file", ["pki/etcd/ca.key", "manifests/etcd.yaml", "bootstrap-kubelet.conf"])
def test_any_remains_of_an_interrupted_run_count(settings, file: str) -> None:
    path = Path(settings.host.file(file))
    path.parent.mkdir(parents=True)
    path.touch()
    assert [what for what in steps(settings) if "kubeadm reset" in what]


def test_a_kubelet_configuration_alone_counts(settings) -> None:
    Path(settings.host.kubelet_config).touch()
    assert "kubeadm reset" in steps(settings)[0]


def test_everything_is_gone_afterwards_and_nothing_else(settings, tmp_path) -> None:
    host = settings.host
    (Path(host.etcd) / "member").mkdir(parents=True)
    (Path(host.etcd) / "mine").touch()
    host.store("init.complete", "")
    (tmp_path / "calico" / "deep").mkdir(parents=True)
    (tmp_path / "conflist").symlink_to("nowhere")
    (tmp_path / "kept").touch()
    plan = reset.make_plan(reset.observe(settings), settings)
    assert plan.diff()["before"] != plan.diff()["after"]
    plan.execute()
    assert os.listdir(host.etcd) == ["mine"]
    assert (tmp_path / "kept").exists()
    assert steps(settings) == []


def test_the_networks_interface_is_removed(settings, tmp_path) -> None:
    (tmp_path / "net" / "vxlan.calico").mkdir(parents=True)
    (tmp_path / "ip").write_text(f'#!/bin/sh\n[ "$*" = "link delete vxlan.calico" ] && rmdir {tmp_path}/net/$3\n')
    (tmp_path / "ip").chmod(0o755)
    settings = reset.ResetSettings(interfaces=["vxlan.calico"], host=settings.host)
    reset.make_plan(reset.observe(settings), settings).execute()
    assert steps(settings) == []


@pytest.mark.parametrize(("leave", "first"), [(True, "etcd"), (False, "kubeadm reset")])
def test_a_member_of_etcd_leaves_before_its_data_goes(settings, leave: bool, first: str) -> None:
    state = reset.ResetState(files=["manifests/etcd.yaml"], etcd_member=True)
    plan = reset.make_plan(state, replace(settings, leave_etcd=leave))
    assert first in plan.steps[0].what
    assert "kubeadm reset" in plan.steps[-1].what


CRICTL = """#!/bin/sh
cd {folder}
case "$3" in
    pods) [ ! -e unreachable ] && ls pods ;;
    rmp) shift 4; cd pods; [ -e ../stuck ] || rm "$@" ;;
esac
"""


def leave_pods(settings: reset.ResetSettings, folder: Path, *names: str) -> None:
    """A host whose kubeadm has not removed these pods, as where their removal took too long."""
    (folder / "pods").mkdir()
    for name in names:
        (folder / "pods" / name).touch()
    (folder / "crictl").write_text(CRICTL.format(folder=folder))
    Path(settings.host.kubelet_config).touch()


def test_pods_that_kubeadm_has_left_are_removed(settings, tmp_path) -> None:
    """The next kubelet would take them for its own, whose network is set up already."""
    leave_pods(settings, tmp_path, "one", "two")
    reset.make_plan(reset.observe(settings), settings).execute()
    assert os.listdir(tmp_path / "pods") == []


def test_pods_that_stay_are_named(settings, tmp_path) -> None:
    leave_pods(settings, tmp_path, "one")
    (tmp_path / "stuck").touch()
    with pytest.raises(TrainyardError, match="the node still has the pods one") as failure:
        reset.make_plan(reset.observe(settings), replace(settings, timeout=0.5)).execute()
    assert "crictl" in failure.value.remedy


def test_a_runtime_that_does_not_answer_has_no_pods(settings, tmp_path) -> None:
    leave_pods(settings, tmp_path, "one")
    (tmp_path / "unreachable").touch()
    reset.make_plan(reset.observe(settings), settings).execute()
