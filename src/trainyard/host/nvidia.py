"""Facts of a host for an NVIDIA driver, and checks against a driver branch.

Parts: GPUs on PCI, kernel modules and secure boot; NVSwitches. The code reads /sys, /lib and /var below a root that
tests replace, and calls modinfo. None of the facts needs a driver.

If a host has NVSwitches, programs cannot use its GPUs until NVIDIA's fabric manager runs. The driver answers for each
GPU without a fabric manager, so all other checks pass. Therefore this check is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from .preflight_checks import Reason, reason
from .units import properties_of

VENDOR = "0x10de"
DISPLAY = ("0x0300", "0x0302")
"""PCI classes of a GPU with and without a display. Other functions of the card are sound and USB."""

FLAVOUR = re.compile(r"^\d[^-]*-(\d[^-]*-)?")
"""Part of a kernel release before its flavour: 6.1.0-28-amd64, 6.12.41+deb13-cloud-amd64, 6.8.0-45-generic."""

KERNEL_SERIES = re.compile(r"(?:-(?:hwe|lts)-[0-9.]+(?:-edge)?)?")
"""End of a metapackage's name after the flavour: linux-image-generic-hwe-24.04, linux-image-aws-lts-24.04."""

GIVEN_AWAY = "vfio-pci"
"""Kernel driver of a device that is passed through to a virtual machine."""

SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ENROLLED = "sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
MODULES = ("nvidia", "nvidia-current")
"""Names of the driver's module; Debian's own packages have the second one."""
MODINFO_TIMEOUT = 20

SHIM_KEY = "var/lib/shim-signed/mok/MOK.der"
DKMS_KEY = "var/lib/dkms/mok.pub"
KEYS = {
    "ubuntu": (SHIM_KEY, "update-secureboot-policy --new-key"),
    "debian": (DKMS_KEY, "apt-get install dkms; dkms generate_mok"),
}
"""System -> certificate (DER) of the key with which its dkms signs modules, and the commands that create the key.

Source: `prepare_signing` of dkms 3.0, which takes Ubuntu's key there, and its own elsewhere."""
DKMS_SETTINGS = ("etc/dkms/framework.conf", "etc/dkms/framework.conf.d/*.conf")
CERTIFICATE = re.compile(r"""^\s*mok_certificate=["']?([^"'\s]+)""", re.MULTILINE)
"""dkms' own setting, which overrides the distribution's."""

RUN_PROGRAMS = ("usr/bin/nvidia-uninstall", "usr/local/bin/nvidia-uninstall")
"""Programs that NVIDIA's .run installer leaves, and no package has."""


@dataclass(frozen=True)
class Architecture:
    """The drivers that support a GPU generation.

    :param ranges: PCI device identifiers, the first and the last one of each range.
    :param oldest: first branch that supports it; 0 if that is older than any in use.
    :param newest: last branch that supports it; 0 if support has not ended.
    :param open_modules: whether the open kernel modules support it (from Turing on, because they need its GSP).
    :param closed_modules: whether the proprietary modules support it.
    """

    name: str
    ranges: tuple[tuple[int, int], ...]
    oldest: int = 0
    newest: int = 0
    open_modules: bool = True
    closed_modules: bool = True


ARCHITECTURES = (
    Architecture("Fermi", ((0x06C0, 0x06DF), (0x0DC0, 0x0F0F), (0x1040, 0x10BF), (0x1140, 0x117F), (0x1200, 0x127F)),
                 newest=390, open_modules=False),
    Architecture("Kepler", ((0x0FC0, 0x103F), (0x1180, 0x11FF), (0x1280, 0x12BF)), newest=470, open_modules=False),
    Architecture("Maxwell", ((0x1340, 0x143F), (0x1600, 0x16FF), (0x1740, 0x17FF)), newest=580, open_modules=False),
    Architecture("Pascal", ((0x15F0, 0x15FF), (0x1720, 0x173F), (0x1B00, 0x1D7F)), newest=580, open_modules=False),
    Architecture("Volta", ((0x1D80, 0x1DFF),), newest=580, open_modules=False),
    Architecture("Turing", ((0x1E00, 0x1FFF), (0x2180, 0x21FF)), oldest=418),
    Architecture("Ampere", ((0x2080, 0x20FF), (0x2200, 0x22FF), (0x2400, 0x25FF)), oldest=450),
    Architecture("Hopper", ((0x2300, 0x237F),), oldest=525),
    Architecture("Ada Lovelace", ((0x2600, 0x28FF),), oldest=525),
    Architecture("Blackwell", ((0x2900, 0x297F), (0x2B80, 0x2DFF), (0x2F00, 0x2FFF)), oldest=570, closed_modules=False),
    Architecture("Blackwell Ultra", ((0x3180, 0x31FF),), oldest=580, closed_modules=False),
)  # fmt: skip
"""Generations by ranges of PCI device identifiers. A GPU outside all ranges is newer than this table and not checked.

Sources: up to Volta, the chips of pci.ids (2023.04.11). From Turing on, g_nv_name_released.h in versions 515.43.04 to
595.45.04 of NVIDIA's open kernel modules; the first version with a range is `oldest` if that is 525 or later. Earlier
branches are from the drivers' release notes. 390 and 470 are NVIDIA's legacy branches. Maxwell, Pascal and Volta are in
that file at 580.105.08, but not at 590.48.01."""


@dataclass(frozen=True)
class NvidiaHost:
    """Observed properties of a host.

    :param gpus: PCI device identifiers of the GPUs.
    :param kernel: release of the running kernel.
    :param headers_lacking: missing packages of kernel headers, which dkms needs to build for this or a later boot.
    :param nouveau: whether the kernel's own driver is loaded.
    :param loaded: version of the loaded NVIDIA kernel module; empty for none.
    :param secure_boot: whether the kernel accepts only signed modules.
    :param key_enrolled: whether the machine trusts the key with which dkms signs.
    :param key: certificate of that key; `key_command` are the commands that create it, empty if it exists.
    :param uninstaller: program of NVIDIA's .run installer; empty without such a driver.
    """

    gpus: Sequence[int]
    kernel: str
    headers_lacking: Sequence[str]
    nouveau: bool
    loaded: str
    secure_boot: bool
    key_enrolled: bool
    key: str = ""
    key_command: str = ""
    uninstaller: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gpus": [f"10de:{gpu:04x}" for gpu in self.gpus]}


def observe(kernel: str, root: Path = Path("/")) -> NvidiaHost:
    """Read the properties of the host.

    :param kernel: kernel release, as in `os.uname`.
    """
    path, command = signing_key(root)
    key = _bytes(root / path)
    return NvidiaHost(
        gpus=gpus_on_bus(root),
        kernel=kernel,
        headers_lacking=headers_lacking(kernel, root),
        nouveau=(root / "sys/module/nouveau").is_dir(),
        loaded=_text(root / "sys/module/nvidia/version"),
        # Four bytes of attributes, then the value.
        secure_boot=_bytes(root / SECURE_BOOT)[4:5] == b"\x01",
        key_enrolled=bool(key) and key in _bytes(root / ENROLLED),
        key=f"/{path}",
        key_command="" if key else command,
        uninstaller=next((f"/{each}" for each in RUN_PROGRAMS if (root / each).exists()), ""),
    )


def signing_key(root: Path = Path("/")) -> tuple[str, str]:
    """Return the certificate with which dkms signs on this host, and the commands that create it."""
    for pattern in DKMS_SETTINGS:
        for path in sorted(root.glob(pattern)):
            if found := CERTIFICATE.findall(_text(path)):
                return found[-1].lstrip("/"), "dkms generate_mok"
    system = re.search(r"^ID=[\"']?(\w+)", _text(root / "etc/os-release"), re.MULTILINE)
    return KEYS.get(system[1] if system else "", KEYS["debian"])


def gpus_on_bus(root: Path = Path("/")) -> list[int]:
    """Return the PCI device identifiers of the host's GPUs, without those passed through to virtual machines."""
    return [int(_text(device / "device"), 16) for device in devices(DISPLAY, root)]


def devices(classes: tuple[str, ...], root: Path = Path("/")) -> list[Path]:
    """Return the folders of NVIDIA devices of some PCI classes, without those passed through to virtual machines."""
    return [
        device
        for device in sorted(root.glob("sys/bus/pci/devices/*"))
        if _text(device / "vendor") == VENDOR
        and _text(device / "class").startswith(classes)
        and (device / "driver").resolve().name != GIVEN_AWAY
    ]


def module_on_disk() -> str:
    """Return the version of the module that modprobe would load; empty without a module or modinfo."""
    for name in MODULES:
        try:
            return run(["modinfo", "--field=version", name], timeout=MODINFO_TIMEOUT).stdout.strip()
        except CommandError:
            continue
    return ""


def headers_lacking(kernel: str, root: Path = Path("/")) -> list[str]:
    """Return the missing packages of kernel headers.

    Needed are the headers of the running kernel and of the newest installed one, which the next boot uses. If a
    metapackage installs new kernels, the metapackage of their headers is needed, too.

    :param kernel: release of the running kernel.
    """
    modules = root / "lib/modules"
    installed = [path.name for path in modules.glob("*") if (root / "boot" / f"vmlinuz-{path.name}").exists()]
    newest = max(installed, key=_release, default=kernel)
    lacking = [each for each in dict.fromkeys((kernel, newest)) if not (modules / each / "build").exists()]
    return [f"linux-headers-{each}" for each in lacking + _metapackages_lacking(FLAVOUR.sub("", kernel), root)]


def _metapackages_lacking(flavour: str, root: Path) -> list[str]:
    """Return the names after `linux-image-` of installed metapackages of kernels without the one of their headers."""
    # Ubuntu's images for virtual machines have the generic kernel by another name.
    flavours = (flavour, "virtual") if flavour == "generic" else (flavour,)
    known = {path.stem for path in (root / "var/lib/dpkg/info").glob("linux-*.list")}
    names = sorted(name.removeprefix("linux-image-") for name in known if name.startswith("linux-image-"))
    return [
        name
        for name in names
        if any(name.startswith(each) and KERNEL_SERIES.fullmatch(name[len(each) :]) for each in flavours)
        and f"linux-headers-{name}" not in known
    ]


def _release(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders 6.12.9 before 6.12.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name)]


def architecture(gpu: int) -> Architecture | None:
    """Return the generation of a GPU; None if the table lacks it.

    :param gpu: PCI device identifier.
    """
    for each in ARCHITECTURES:
        if any(first <= gpu <= last for first, last in each.ranges):
            return each
    return None


def problems(
    host: NvidiaHost, branch: str, *, open_modules: bool, installed: bool = False, signed: bool = False
) -> list[Reason]:
    """Return the reasons why the driver cannot be installed; empty if it can.

    :param branch: branch of the driver, such as "580"; empty if the distribution chooses it.
    :param installed: the driver is already installed. If its module is loaded, its signature was accepted.
    :param signed: the distribution has signed the modules, so dkms signs nothing.
    """
    if not host.gpus:
        return [reason("gpu_absent")]
    found = list(dict.fromkeys(_gpu_problems(host.gpus, branch, open_modules)))
    if host.uninstaller:
        found.append(reason("driver_of_run_file", program=host.uninstaller))
    if host.secure_boot and not (host.key_enrolled or signed or (installed and host.loaded)):
        commands = [host.key_command, f"mokutil --import {host.key}"]
        shown = ", then ".join(f"`{each}`" for each in commands if each)
        found.append(reason("secure_boot", key=host.key, commands=shown))
    return found


def _gpu_problems(gpus: Sequence[int], branch: str, open_modules: bool) -> Iterator[Reason]:
    number = int(match[0]) if (match := re.match(r"\d+", branch)) else 0
    for gpu in gpus:
        kind = architecture(gpu)
        if kind is None:
            continue
        named = f"10de:{gpu:04x} ({kind.name})"
        if number and number < kind.oldest:
            yield reason("gpu_too_new", gpu=named, branch=branch, wanted=kind.oldest)
        if number and kind.newest and number > kind.newest:
            yield reason("gpu_too_old", gpu=named, branch=branch, wanted=kind.newest)
        if open_modules and not kind.open_modules:
            yield reason("gpu_modules", gpu=named, wanted="proprietary", value="false")
        if not open_modules and not kind.closed_modules:
            yield reason("gpu_modules", gpu=named, wanted="open", value="true")


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace").strip()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


CLASS = ("0x0680",)
"""PCI class of an NVSwitch: bridge, other."""

FABRIC_MANAGER = "nvidia-fabricmanager.service"


@dataclass(frozen=True)
class Fabric:
    """Observed properties of a host.

    :param switches: number of NVSwitches, without those passed through to virtual machines.
    :param manager: whether the fabric manager service runs; false without switches.
    """

    switches: int
    manager: bool


def observe_nvswitches(root: Path = Path("/")) -> Fabric:
    """Read the NVSwitches from the PCI bus, and the state of the service."""
    switches = len(devices(CLASS, root))
    return Fabric(switches, manager=bool(switches) and _manager_runs())


def nvswitch_problems(fabric: Fabric, *, installed: bool) -> list[Reason]:
    """Return why no program could use the GPUs; empty if programs can.

    The fabric manager must have exactly the driver's version, so a running one does not help a new driver.

    :param installed: the driver is already installed, and is not changed.
    """
    if not fabric.switches or (installed and fabric.manager):
        return []
    return [reason("nvswitch", count=fabric.switches, unit=FABRIC_MANAGER)]


def _manager_runs() -> bool:
    try:
        return properties_of(FABRIC_MANAGER, ("ActiveState",)).get("ActiveState") == "active"
    except CommandError:
        return False
