"""What a host has for an NVIDIA driver, from a tree like /sys, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from trainyard.gpu import look
from trainyard.host.nvidia import (
    ARCHITECTURES,
    DKMS_KEY,
    ENROLLED,
    SECURE_BOOT,
    SHIM_KEY,
    NvidiaHost,
    architecture,
    observe,
    problems,
)

T4, V100, H100, B200, P100, K80 = 0x1EB8, 0x1DB4, 0x2330, 0x2901, 0x15F8, 0x102D


def device(root: Path, slot: str, **files: str) -> None:
    folder = root / "sys/bus/pci/devices" / slot
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / {"kind": "class"}.get(name, name)).write_text(f"{text}\n", encoding="utf-8")


def put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def host(*gpus: int, **changes: object) -> NvidiaHost:
    values = {"kernel": "6.12", "headers_lacking": [], "nouveau": False, "loaded": ""}
    values |= {"secure_boot": False, "key_enrolled": False}
    return NvidiaHost(gpus=gpus, **{**values, **changes})


def test_only_gpus_of_nvidia_are_seen(tmp_path: Path) -> None:
    device(tmp_path, "0000:01:00.0", vendor="0x10de", device="0x1eb8", kind="0x030200")
    device(tmp_path, "0000:02:00.0", vendor="0x10de", device="0x2330", kind="0x030000")
    device(tmp_path, "0000:02:00.1", vendor="0x10de", device="0x22ba", kind="0x040300")
    device(tmp_path, "0000:03:00.0", vendor="0x1af4", device="0x1050", kind="0x030000")
    seen = observe("6.12", tmp_path)
    assert list(seen.gpus) == [T4, H100]
    assert seen.as_dict()["gpus"] == ["10de:1eb8", "10de:2330"]
    assert not (seen.nouveau or seen.loaded or seen.secure_boot or seen.key_enrolled)


def test_a_gpu_of_a_virtual_machine_is_not_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "ROOT", tmp_path)
    assert look.on_bus() is None, "a machine may have GPUs, and no such bus"
    for slot, name in (("0000:01:00.0", "nvidia"), ("0000:02:00.0", "vfio-pci")):
        device(tmp_path, slot, vendor="0x10de", device="0x1eb8", kind="0x030200")
        (tmp_path / "sys/bus/pci/drivers" / name).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/devices" / slot / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers" / name)
    assert list(observe("6.12", tmp_path).gpus) == [T4]
    assert look.on_bus() == 1


def test_modules_headers_and_secure_boot_are_seen(tmp_path: Path) -> None:
    put(tmp_path, "lib/modules/6.12/build/Makefile", b"")
    put(tmp_path, "sys/module/nouveau/refcnt", b"1\n")
    put(tmp_path, "sys/module/nvidia/version", b"580.95.05\n")
    put(tmp_path, SECURE_BOOT, b"\x06\0\0\0\x01")
    seen = observe("6.12", tmp_path)
    assert (seen.headers_lacking, seen.nouveau, seen.loaded, seen.secure_boot) == ([], True, "580.95.05", True)
    assert observe("6.13", tmp_path).headers_lacking == ["linux-headers-6.13"]


@pytest.mark.parametrize(
    ("running", "others", "images", "lacking"),
    [
        # The next boot takes the newest, and what upgrades the kernel has to upgrade its headers.
        ("6.1.0-9-amd64", ["6.1.0-28-amd64"], ["amd64"], ["6.1.0-9-amd64", "6.1.0-28-amd64", "amd64"]),
        ("6.1.0-28-amd64", ["6.1.0-9-amd64"], [], ["6.1.0-28-amd64"]),
        ("6.12.41+deb13-cloud-amd64", [], ["amd64", "cloud-amd64"], ["6.12.41+deb13-cloud-amd64", "cloud-amd64"]),
        ("6.8.0-4-generic", [], ["generic-hwe-24.04", "aws"], ["6.8.0-4-generic", "generic-hwe-24.04"]),
        ("6.8.0-4-generic", [], ["virtual", "extra-virtual"], ["6.8.0-4-generic", "virtual"]),
    ],
)
def test_the_headers_of_this_boot_and_of_later_ones(
    tmp_path: Path, running: str, others: list[str], images: list[str], lacking: list[str]
) -> None:
    for release in (running, *others):
        put(tmp_path, f"lib/modules/{release}/modules.dep", b"")
        put(tmp_path, f"boot/vmlinuz-{release}", b"")
    for flavour in images:
        put(tmp_path, f"var/lib/dpkg/info/linux-image-{flavour}.list", b"")
    assert observe(running, tmp_path).headers_lacking == [f"linux-headers-{each}" for each in lacking]
    for release in (running, *others):
        put(tmp_path, f"lib/modules/{release}/build/Makefile", b"")
    for flavour in images:
        put(tmp_path, f"var/lib/dpkg/info/linux-headers-{flavour}.list", b"")
    assert observe(running, tmp_path).headers_lacking == []


@pytest.mark.parametrize(
    ("files", "key", "command"),
    [
        ({"etc/os-release": b'NAME="Ubuntu"\nID=ubuntu\n'}, SHIM_KEY, "update-secureboot-policy --new-key"),
        ({"etc/os-release": b"ID=debian\n"}, DKMS_KEY, "apt-get install dkms; dkms generate_mok"),
        ({}, DKMS_KEY, "apt-get install dkms; dkms generate_mok"),
        # An owner's setting, as dkms itself reads it.
        (
            {"etc/os-release": b"ID=ubuntu\n", "etc/dkms/framework.conf": b'# x\nmok_certificate="/root/mine.der"\n'},
            "root/mine.der",
            "dkms generate_mok",
        ),
    ],
)
def test_the_key_is_that_with_which_dkms_signs(files: dict[str, bytes], key: str, command: str, tmp_path: Path) -> None:
    for name, content in files.items():
        put(tmp_path, name, content)
    put(tmp_path, SECURE_BOOT, b"\x06\0\0\0\x01")
    put(tmp_path, ENROLLED, b"\x06\0\0\0list certificate end")
    seen = observe("6.12", tmp_path)
    assert (seen.key, seen.key_command, seen.key_enrolled) == (f"/{key}", command, False)
    # The other distribution's key does not sign here, even if the machine trusts it.
    for other in {SHIM_KEY, DKMS_KEY} - {key}:
        put(tmp_path, other, b"certificate")
    assert not observe("6.12", tmp_path).key_enrolled
    put(tmp_path, key, b"unknown")
    assert not observe("6.12", tmp_path).key_enrolled
    put(tmp_path, key, b"certificate")
    assert observe("6.12", tmp_path).key_enrolled and not observe("6.12", tmp_path).key_command


def test_the_remedy_of_secure_boot_creates_a_missing_key() -> None:
    seen = host(T4, secure_boot=True, key=f"/{SHIM_KEY}", key_command="update-secureboot-policy --new-key")
    (found,) = problems(seen, "580", open_modules=True)
    assert f"`update-secureboot-policy --new-key`, then `mokutil --import /{SHIM_KEY}`" in found.remedy
    (found,) = problems(replace(seen, key_command=""), "580", open_modules=True)
    assert f"Enrol it: `mokutil --import /{SHIM_KEY}`" in found.remedy
    assert problems(seen, "580", open_modules=True, signed=True) == []


def test_a_driver_of_the_run_program_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "usr/bin/nvidia-uninstall", b"")
    assert observe("6.12", tmp_path).uninstaller == "/usr/bin/nvidia-uninstall"
    (found,) = problems(host(T4, uninstaller="/usr/bin/nvidia-uninstall"), "580", open_modules=True)
    assert "Run `/usr/bin/nvidia-uninstall`" in found.remedy


@pytest.mark.parametrize(
    ("gpu", "name"),
    [(T4, "Turing"), (V100, "Volta"), (H100, "Hopper"), (B200, "Blackwell"), (P100, "Pascal"), (K80, "Kepler"),
     (0x20B0, "Ampere"), (0x2236, "Ampere"), (0x27B8, "Ada Lovelace"), (0x2204, "Ampere"), (0x1B38, "Pascal"),
     (0x17FD, "Maxwell"), (0x13F2, "Maxwell"), (0x2BB5, "Blackwell"), (0x2184, "Turing")],
)  # fmt: skip
def test_the_generation_of_known_gpus(gpu: int, name: str) -> None:
    assert (found := architecture(gpu)) and found.name == name


def test_no_gpu_is_of_two_generations() -> None:
    ranges = sorted(each for kind in ARCHITECTURES for each in kind.ranges)
    assert all(last < first for (_, last), (first, _) in pairwise(ranges))


@pytest.mark.parametrize(
    ("seen", "branch", "open_modules"),
    [(host(T4, H100), "580", True), (host(V100), "580", False), (host(0xFFFE), "580", True), (host(T4), "", True)],
)
def test_hosts_that_can_be(seen: NvidiaHost, branch: str, open_modules: bool) -> None:
    assert problems(seen, branch, open_modules=open_modules) == []


@pytest.mark.parametrize(
    ("seen", "branch", "open_modules", "said"),
    [
        (host(), "580", True, "it has no NVIDIA GPU"),
        (host(V100), "580", True, "(Volta) needs the proprietary kernel modules"),
        (host(V100), "590", False, "is no longer supported by the driver branch 590. Set nvidia_driver_branch to 580"),
        (host(B200), "550", True, "is newer than the driver branch 550. Set nvidia_driver_branch to 570 or newer"),
        (host(B200), "580", False, "needs the open kernel modules"),
        (host(K80), "580", False, "Set nvidia_driver_branch to 470"),
        (host(T4, secure_boot=True), "580", True, "secure boot is on"),
    ],
)
def test_refused(seen: NvidiaHost, branch: str, open_modules: bool, said: str) -> None:
    (found,) = map(str, problems(seen, branch, open_modules=open_modules))
    assert said in found


@pytest.mark.parametrize(("loaded", "installed", "refused"), [("580.1", True, 0), ("580.1", False, 1), ("", True, 1)])
def test_secure_boot_is_no_matter_of_a_driver_that_runs(loaded: str, installed: bool, refused: int) -> None:
    seen = host(T4, secure_boot=True, loaded=loaded)
    assert len(problems(seen, "580", open_modules=True, installed=installed)) == refused


def test_everything_is_named_once() -> None:
    found = problems(host(V100, V100, secure_boot=True), "590", open_modules=True)
    assert len(found) == 3
    assert problems(host(T4, secure_boot=True, key_enrolled=True), "580", open_modules=True) == []
