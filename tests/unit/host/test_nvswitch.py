"""NVSwitches: which hosts are refused, from a tree like /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.host.test_nvidia import device
from trainyard.core.errors import CommandError
from trainyard.host import nvidia
from trainyard.host.nvidia import Fabric
from trainyard.host.nvidia import nvswitch_problems as problems
from trainyard.host.nvidia import observe_nvswitches as observe

SWITCH = {"vendor": "0x10de", "device": "0x22a3", "kind": "0x068000"}
GPU = {"vendor": "0x10de", "device": "0x2330", "kind": "0x030200"}


@pytest.mark.parametrize(
    ("state", "installed", "refused"),
    [("inactive", True, True), ("failed", False, True), ("active", False, True), ("active", True, False)],
)
def test_a_host_with_switches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, installed: bool, refused: bool
) -> None:
    monkeypatch.setattr(nvidia, "properties_of", lambda *_: {"ActiveState": state})
    for number in range(4):
        device(tmp_path, f"0000:0{number}:00.0", **SWITCH)
        device(tmp_path, f"0000:1{number}:00.0", **GPU)
    fabric = observe(tmp_path)
    assert fabric == Fabric(4, manager=state == "active")
    found = [str(each) for each in problems(fabric, installed=installed)]
    assert bool(found) == refused
    for problem in found:
        assert all(word in problem for word in ("4 NVSwitches", "gpu_nodes", "nvidia-fabricmanager.service")), problem


def test_a_host_without_switches_is_not_asked_for_its_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "properties_of", lambda *_: pytest.fail("asked"))
    device(tmp_path, "0000:01:00.0", **GPU)
    # A bridge of another vendor, a switch of a virtual machine.
    device(tmp_path, "0000:02:00.0", vendor="0x8086", device="0x0001", kind="0x068000")
    device(tmp_path, "0000:03:00.0", **SWITCH)
    (tmp_path / "sys/bus/pci/drivers/vfio-pci").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:03:00.0/driver").symlink_to(tmp_path / "sys/bus/pci/drivers/vfio-pci")
    assert problems(observe(tmp_path), installed=False) == []


def test_a_service_that_cannot_be_asked_for_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, str]:
        raise CommandError("systemctl cannot be started.")

    monkeypatch.setattr(nvidia, "properties_of", fail)
    device(tmp_path, "0000:03:00.0", **SWITCH)
    assert observe(tmp_path) == Fabric(1, manager=False)
