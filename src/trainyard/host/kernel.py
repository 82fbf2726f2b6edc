"""Configure the kernel of a node: check features, load modules if the host has any, set sysctls, turn swap off.

The kernel's files are read below a root that tests replace.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.files import write
from ..core.plan import Change, Plan, Step
from .facts import text_of
from .preflight_checks import reason

COMMAND_TIMEOUT = 60.0
SWAP_OFF = "# trainyard: swap is off: "
"""Prefix that disables a line of fstab; removing it restores the line."""

ZRAM_SERVICE = "zramswap.service"
"""Service of Debian's zram-tools. It calls swapon itself, so masking the swap target does not stop it."""

RAISED = ("fs.inotify.max_user_instances", "fs.inotify.max_user_watches")
"""Limits that are only raised: a host with a higher one needs it."""

_SWAP_LINE = re.compile(r"\s*[^#\s]\S*\s+\S+\s+swap(\s|$)")


@dataclass(frozen=True)
class Feature:
    """One kernel feature and its traces.

    :param module: the module that provides it.
    :param option: the build option, without CONFIG_.
    :param path: path that exists if the feature is present.
    :param filesystem: name in /proc/filesystems if the feature is present.
    """

    module: str
    option: str
    path: str = ""
    filesystem: str = ""


FEATURES: Mapping[str, Feature] = {
    "overlay": Feature("overlay", "OVERLAY_FS", filesystem="overlay"),
    "br_netfilter": Feature("br_netfilter", "BRIDGE_NETFILTER", path="proc/sys/net/bridge/bridge-nf-call-iptables"),
    "nf_conntrack": Feature("nf_conntrack", "NF_CONNTRACK", path="proc/sys/net/netfilter/nf_conntrack_max"),
    "nf_tables": Feature("nf_tables", "NF_TABLES"),
    "ip_set": Feature("ip_set", "IP_SET"),
    "veth": Feature("veth", "VETH"),
    "vxlan": Feature("vxlan", "VXLAN"),
    "fuse": Feature("fuse", "FUSE_FS", filesystem="fuse"),
}


@dataclass
class Kernel:
    """The desired kernel state.

    :param features: names of FEATURES.
    :param sysctls: name -> value.
    :param swap_off: turn swap off, now and in fstab.
    """

    features: Sequence[str]
    sysctls: Mapping[str, str]
    swap_off: bool
    root: str = "/"
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = Path(self.root)
        self.release = os.uname().release

    def plan(self) -> Plan:
        """Compare and plan.

        :raises TrainyardError: a feature is absent, or a sysctl does not exist and no planned module can provide it.
        """
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        steps: list[Step] = []
        self._plan_features(steps, before, after)
        self._plan_sysctls(steps, before, after)
        if self.swap_off:
            self._plan_swap(steps, before, after)
        return Plan(steps, before, after, by_subject=False)

    def state_of(self, name: str) -> str:
        """Return `present`, `loadable` (as a module for the running kernel), `absent`, or `unknown` (no evidence)."""
        feature = FEATURES[name]
        modules = self.base / "lib/modules" / self.release
        if feature.path and (self.base / feature.path).exists():
            return "present"
        if feature.filesystem and feature.filesystem in self._text("proc/filesystems").split():
            return "present"
        if (self.base / "sys/module" / feature.module).exists():
            return "present"
        if _names_module(self._text(modules / "modules.builtin"), feature.module):
            return "present"
        if _names_module(self._text(modules / "modules.dep"), feature.module):
            return "loadable"
        built = self._option(feature.option)
        if built == "y":
            return "present"
        # One of these sources would have shown the feature. It is unknown only if there was no source.
        if feature.path or feature.filesystem or built is not None or modules.is_dir():
            return "absent"
        return "unknown"

    def _plan_features(self, steps: list[Step], before: dict[str, Any], after: dict[str, Any]) -> None:
        states = {name: self.state_of(name) for name in self.features}
        absent = [name for name, state in states.items() if state == "absent"]
        if absent:
            modules = ", ".join(FEATURES[name].module for name in absent)
            raise reason("kernel_feature", release=self.release, lacking=", ".join(absent), modules=modules).as_error()
        for name, state in states.items():
            if state == "unknown":
                self.warnings.append(f"It is unknown whether the kernel has {name}; it is assumed to be present.")
            if state == "loadable":
                module = FEATURES[name].module
                change = Change(f"kernel module {name}", "not loaded", "loaded")
                steps.append(Step(f"Load the kernel module {module}", partial(_modprobe, module), [change]))
                before[name], after[name] = "not loaded", "loaded"

    def _plan_sysctls(self, steps: list[Step], before: dict[str, Any], after: dict[str, Any]) -> None:
        loads = bool(steps)
        for name, value in sorted(self.sysctls.items()):
            path = self.base / "proc/sys" / sysctl_path(name)
            now = " ".join(self._text(path).split())
            wanted = " ".join(value.split())
            if not path.exists() and not loads:
                raise reason("kernel_parameter", release=self.release, name=name).as_error()
            if now != wanted and not (name in RAISED and _is_more(now, wanted)):
                change = Change(f"sysctl {name}", now or None, wanted)
                steps.append(Step(f"Set {name} to {wanted}", partial(_set, name, path, wanted), [change]))
                before[name], after[name] = now or None, wanted

    def _plan_swap(self, steps: list[Step], before: dict[str, Any], after: dict[str, Any]) -> None:
        devices = [line.split()[0] for line in self._text("proc/swaps").splitlines()[1:]]
        fstab = self.base / "etc/fstab"
        text = self._text(fstab)
        new = without_swap(text)
        container = bool(self._text("run/systemd/container").strip())
        if devices and container:
            self.warnings.append(f"Swap on {', '.join(devices)} belongs to the machine that runs this container.")
        elif devices:
            off = lambda: run(["swapoff", "--all"], timeout=COMMAND_TIMEOUT * 5)  # noqa: E731
            steps.append(Step("Turn swap off", off, [Change("swap", devices, [])]))
            before["swap"], after["swap"] = devices, []
        if not container:
            self._plan_swap_units(steps, before, after)
        if new != text:
            change = Change("fstab", text.splitlines(), new.splitlines())
            steps.append(Step("Disable swap in /etc/fstab", lambda: write(str(fstab), new, 0o644), [change]))
            before["fstab"], after["fstab"] = text.splitlines(), new.splitlines()

    def _plan_swap_units(self, steps: list[Step], before: dict[str, Any], after: dict[str, Any]) -> None:
        """Plan to disable units that turn swap on at boot without fstab: generated ones for zram or typed partitions,
        and a service."""
        units = self.base / "etc/systemd/system"
        if os.path.realpath(units / "swap.target") != os.path.realpath("/dev/null"):
            change = Change("swap.target", "not masked", "masked")
            steps.append(Step("Mask swap.target", partial(_systemctl, "mask", "swap.target"), [change]))
            before["swap.target"], after["swap.target"] = "not masked", "masked"
        if ZRAM_SERVICE in [link.name for link in units.glob("*.wants/*")]:
            disable = partial(_systemctl, "disable", "--now", ZRAM_SERVICE)
            change = Change(ZRAM_SERVICE, "enabled", "disabled")
            steps.append(Step(f"Disable {ZRAM_SERVICE}", disable, [change]))
            before[ZRAM_SERVICE], after[ZRAM_SERVICE] = "enabled", "disabled"

    def _text(self, path: str | Path) -> str:
        return text_of(self.base / path)

    def _option(self, option: str) -> str | None:
        """Return `y`, `m` or `n` from the running kernel's configuration; None if that cannot be read."""
        packed = self.base / "proc/config.gz"
        if packed.exists():
            with gzip.open(packed, "rt", encoding="utf-8") as stream:
                config = stream.read()
        else:
            config = self._text(f"boot/config-{self.release}")
        if not config:
            return None
        match = re.search(rf"^CONFIG_{option}=(\w)", config, re.MULTILINE)
        return match.group(1) if match else "n"


def sysctl_path(name: str) -> str:
    """Return the path below /proc/sys; as in sysctl.d(5), the first separator determines which one is used."""
    first = re.search(r"[./]", name)
    return name.translate(str.maketrans("./", "/.")) if first and first.group() == "." else name


def _is_more(now: str, wanted: str) -> bool:
    return now.isdigit() and wanted.isdigit() and int(now) > int(wanted)


def without_swap(fstab: str) -> str:
    """Return fstab with its swap lines commented out."""
    lines = fstab.splitlines(keepends=True)
    return "".join(SWAP_OFF + line if _SWAP_LINE.match(line) else line for line in lines)


def _names_module(listing: str, module: str) -> bool:
    pattern = module.replace("_", "[-_]")
    return bool(re.search(rf"^(\S*/)?{pattern}\.ko(\.\w+)?(:|$)", listing, re.MULTILINE))


def _systemctl(*words: str) -> None:
    run(["systemctl", "--quiet", *words], timeout=COMMAND_TIMEOUT)


def _modprobe(module: str) -> None:
    run(["modprobe", module], timeout=COMMAND_TIMEOUT)


def _set(name: str, path: Path, value: str) -> None:
    try:
        path.write_text(value + "\n", encoding="utf-8")
    except OSError as error:
        raise TrainyardError(
            f"The sysctl {name} cannot be set to {value}: {error.strerror}.", remedy="Correct base_sysctls."
        ) from error
