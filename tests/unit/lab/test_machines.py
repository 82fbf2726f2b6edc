"""The lab's emulated machines: what is planned for which, and how one is started; nothing is emulated here."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.test_lab import PARAMETERS
from trainyard.core.errors import CommandError, TrainyardError
from trainyard.lab import keys, lab_model, machines, network

KINDS = {"one": "machine", "two": "container"}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lab_model.Lab:
    """A lab of a machine and a container, on a computer where nothing runs."""
    image = tmp_path / "image"
    image.mkdir()
    for name in ("disk.raw", "vmlinuz", "initrd.img"):
        (image / name).write_text(name, encoding="utf-8")
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(machines, "PROC", tmp_path / "proc")
    monkeypatch.setattr(network, "links", dict)
    monkeypatch.setattr(network, "bridge_of", lambda lab: "br0")
    machine = {"image": str(image), "cpus": 3, "memory_mib": 4096, "disk_gib": 10, "accelerator": "auto"}
    return lab_model.parse({**PARAMETERS, "kinds": KINDS, "machine": machine, "state_dir": str(tmp_path / "lab")})


def process(lab: lab_model.Lab, pid: int, name: str, program: str = "/usr/bin/qemu-system-x86_64") -> None:
    folder = machines.PROC / str(pid)
    folder.mkdir()
    words = [program, "-name", "x", "-pidfile", str(machines.folder(lab, name) / "pid"), ""]
    (folder / "cmdline").write_text("\0".join(words), encoding="utf-8")


def disk(lab: lab_model.Lab, name: str) -> Path:
    path = machines.folder(lab, name) / "disk.qcow2"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def planned(lab: lab_model.Lab, containers: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
    steps, states = machines.plan(lab, containers, "br0")
    return [step.what for step in steps], states


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(TrainyardError, match="lab_kind of one is 'vm'"):
        lab_model.parse({**PARAMETERS, "state_dir": "/nowhere/lab", "kinds": {"one": "vm"}})


def test_a_machine_is_made_started_and_left_alone(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    create, start = "Create the machine one at 10.99.0.21", "Start the machine one"
    assert planned(lab) == ([create, start], {"one": "absent"})
    path = disk(lab, "one")
    assert planned(lab) == ([start], {"one": "stopped"})
    process(lab, 100, "one", program="/usr/bin/less")
    assert planned(lab) == ([start], {"one": "stopped"})
    process(lab, 101, "one")
    assert planned(lab) == (["Reattach one to the lab's bridge"], {"one": "running"})
    monkeypatch.setattr(network, "links", lambda: {network.name(lab, "one"): {"master": "br0", "flags": ["UP"]}})
    assert planned(lab) == ([], {"one": "running"})
    path.unlink()
    with pytest.raises(TrainyardError, match="disk that no longer exists"):
        planned(lab)


def test_a_host_cannot_become_the_other_kind(lab: lab_model.Lab) -> None:
    with pytest.raises(TrainyardError, match="one is a container of this lab, but its lab_kind is machine"):
        planned(lab, ("lab-one",))
    disk(lab, "two")
    with pytest.raises(TrainyardError, match="two is a machine of this lab, but its lab_kind is container"):
        planned(lab)


def test_a_machine_has_its_own_copy_and_identity(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle's cache may be emptied while the machine lives."""
    calls: list[list[str]] = []

    def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        calls.append(argv)
        Path(options["cwd"], "disk.qcow2").touch()
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(machines, "run", run)
    for step in keys.plan_keys(lab):
        step.act()
    left = machines.folder(lab, "one") / "left"
    left.parent.mkdir(parents=True)
    left.touch()
    machines._create(lab, lab.machines[0])
    place = machines.folder(lab, "one")
    found = {path.name for path in place.iterdir()}
    assert found == {"disk.raw", "vmlinuz", "initrd.img", "identity.tar", "disk.qcow2"}
    assert (place / "identity.tar").stat().st_mode & 0o777 == 0o600
    assert calls[0][-1] == "10G"
    with tarfile.open(place / "identity.tar") as archive:
        stream = archive.extractfile("etc/systemd/network/10-lab.network")
        assert stream
        listed = stream.read().decode()
    assert "Address=10.99.0.21/24\nGateway=10.99.0.1" in listed


def test_a_missing_image_is_refused_by_name(lab: lab_model.Lab) -> None:
    (lab.machine.image / "disk.raw").unlink()
    with pytest.raises(TrainyardError, match="not in the bundle"):
        machines._create(lab, lab.machines[0])
    assert not machines.folder(lab, "one").exists()


def test_the_command_line_has_what_the_inventory_says(lab: lab_model.Lab) -> None:
    words = machines.arguments(lab, lab.machines[0], "tcg")
    assert {"3", "4096M", "qemu64,-cx16", "-daemonize", "lab-one"} <= set(words)
    assert "virtio-net-pci,netdev=lab,mac=02:42:0a:63:00:15,romfile=,csum=off" in words
    assert f"tap,id=lab,ifname={network.name(lab, 'one')},script=no,downscript=no" in words
    assert len(network.name(lab, "one")) <= 15
    assert network.name(lab, "one") != network.name(lab, "two")


@pytest.mark.parametrize(
    ("console", "status", "expected"),
    [("[0.0] Linux version 6.12", 0, "kvm"), ("", 0, "tcg"), ("", None, "tcg"), ("Linux version", None, "tcg")],
)
def test_kvm_is_taken_where_a_kernel_starts_under_it(
    console: str, status: int | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the device is there, and a guest does not get past its firmware."""

    def run(argv: list[str], **options: Any) -> None:
        (tmp_path / "kvm.log").write_text(console, encoding="utf-8")
        if status is None:
            raise CommandError("did not end")

    monkeypatch.setattr(machines, "run", run)
    monkeypatch.setattr(machines, "KVM", tmp_path)
    assert machines.accelerator("auto", tmp_path) == expected
    assert machines.accelerator("tcg", tmp_path) == "tcg"
    monkeypatch.setattr(machines, "KVM", tmp_path / "absent")
    assert machines.accelerator("auto", tmp_path) == "tcg"


def test_only_the_named_machines_are_removed(lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(lab, "one")
    process(lab, 101, "one")
    device = network.name(lab, "three")
    monkeypatch.setattr(network, "links", lambda: {device: {"ifalias": "trainyard:lab:three"}, "x": {"ifalias": "y"}})
    assert machines.known(lab) == ["one", "three"]
    assert [step.what for step in machines.plan_removal(lab, ["one"])] == [
        "Stop the machine one",
        "Remove the disk of one",
    ]
    assert [step.what for step in machines.plan_removal(lab, ["three"])] == ["Remove the network device of three"]


@pytest.mark.parametrize(
    ("found", "refused", "message"),
    [("", "tuntap", "refuses the network device"), ("somebody", "", "that no lab made")],
)
def test_a_device_that_cannot_be_had_is_refused_by_name(
    found: str, refused: str, message: str, lab: lab_model.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ip(*words: str) -> None:
        if words[0] == refused:
            raise CommandError("ip tuntap add ended with status 1: Operation not permitted")

    device = network.name(lab, "one")
    monkeypatch.setattr(network, "_ip", ip)
    monkeypatch.setattr(network, "links", lambda: {"br0": {}, **({device: {"ifalias": found}} if found else {})})
    with pytest.raises(TrainyardError, match=message):
        network.attach(lab, lab.machines[0])
