"""The lab's folder on this machine: whose it is, and what is kept in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from library import lab as module
from tests.unit.lab.test_lab import PARAMETERS
from trainyard.core.errors import TrainyardError
from trainyard.lab import host, keys, lab_model, lab_nodes


@pytest.fixture
def lab(tmp_path: Path) -> lab_model.Lab:
    return lab_model.parse({**PARAMETERS, "state_dir": str(tmp_path / "lab")})


def test_a_folder_of_somebody_else_is_neither_taken_nor_removed(lab: lab_model.Lab) -> None:
    """A lab named `etc` would have the name of a folder that every machine has."""
    lab.state_dir.mkdir()
    (lab.state_dir / "passwd").touch()
    for plan in (keys.plan_marker, keys.plan_state_removal):
        with pytest.raises(TrainyardError, match="lacks the marker"):
            plan(lab)
    lab.marker.write_text("another", encoding="utf-8")
    with pytest.raises(TrainyardError, match="lacks the marker"):
        keys.plan_state_removal(lab)
    assert (lab.state_dir / "passwd").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_lab_marks_its_folder_once_and_removes_it(lab: lab_model.Lab, exists: bool) -> None:
    if exists:
        lab.state_dir.mkdir()
    (step,) = keys.plan_marker(lab)
    step.act()
    assert keys.plan_marker(lab) == []
    (removal,) = keys.plan_state_removal(lab)
    removal.act()
    assert not lab.state_dir.exists()


def test_a_lab_from_before_the_marker_is_known_by_its_key(lab: lab_model.Lab) -> None:
    public = Path(f"{lab.ssh_key}.pub")
    public.parent.mkdir(parents=True)
    public.write_text("ssh-ed25519 AAAA lab lab\n", encoding="utf-8")
    assert keys.is_ours(lab)
    public.write_text("ssh-ed25519 AAAA somebody@machine\n", encoding="utf-8")
    assert not keys.is_ours(lab)


def test_kernel_settings_are_put_back(lab: lab_model.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PROC_SYS", tmp_path / "sys")
    paths = [tmp_path / "sys" / name.replace(".", "/") for name in host.KUBELET_SETTINGS]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0\n", encoding="ascii")
    assert host.plan_restore(lab) == []
    for step in host.plan_record(lab):
        step.act()
    paths[0].write_text("1\n", encoding="ascii")
    (step,) = host.plan_restore(lab)
    step.act()
    assert [path.read_text(encoding="ascii").strip() for path in paths] == ["0", "0", "0"]
    assert host.plan_restore(lab) == []


@pytest.mark.parametrize("program", ["podman", "nft", "ip"])
def test_a_lab_keeps_its_folder_while_a_program_for_its_removal_is_missing(
    lab: lab_model.Lab, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PATH without /usr/sbin has podman, but not nft: the nodes would run without a record of their lab."""
    monkeypatch.setattr(module, "missing", lambda *_: [program])
    assert [step.what for step in module.plan_absent(lab).steps] == []
    keys.plan_marker(lab)[0].act()
    with pytest.raises(TrainyardError, match=f"Not installed, or not on the PATH: {program}"):
        module.plan_absent(lab)
    assert lab.marker.exists()


def test_a_call_that_only_looks_needs_no_image(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of hosts ask which nodes run. An empty path is the working directory, which exists."""
    monkeypatch.setattr(lab_nodes, "podman", None)
    without = replace(lab, layout=Path(), image="")
    assert [step.what for step in lab_nodes.plan_image(without)] == ["Load the image of the nodes from the bundle"]
