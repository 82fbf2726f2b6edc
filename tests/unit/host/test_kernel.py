"""kernel_settings: features told from their traces, sysctls, swap; nothing here touches the running kernel."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host.kernel import Kernel, sysctl_path, without_swap

MODULES = f"lib/modules/{os.uname().release}"


def make_root(root: Path, files: dict[str, str]) -> str:
    for name, content in {"proc/swaps": "Filename Type Size Used Priority\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(content.encode()))
        else:
            path.write_text(content)
    return str(root)


@pytest.mark.parametrize(
    ("feature", "files", "state"),
    [
        ("overlay", {"proc/filesystems": "nodev\toverlay\n"}, "present"),
        ("overlay", {"proc/filesystems": "nodev\ttmpfs\n"}, "absent"),
        ("overlay", {f"{MODULES}/modules.dep": "kernel/fs/overlayfs/overlay.ko.xz:\n"}, "loadable"),
        ("br_netfilter", {"proc/sys/net/bridge/bridge-nf-call-iptables": "0\n"}, "present"),
        ("br_netfilter", {f"{MODULES}/modules.dep": "kernel/net/bridge/br_netfilter.ko: kernel/x.ko\n"}, "loadable"),
        ("br_netfilter", {f"{MODULES}/modules.dep": "kernel/x.ko: kernel/net/bridge/br_netfilter.ko\n"}, "absent"),
        ("veth", {"sys/module/veth/refcnt": "0"}, "present"),
        ("veth", {"proc/config.gz": "CONFIG_VETH=y\n"}, "present"),
        ("veth", {"proc/config.gz": "# CONFIG_VETH is not set\n"}, "absent"),
        ("veth", {f"{MODULES}/modules.builtin": "kernel/drivers/net/veth.ko\n"}, "present"),
        ("veth", {}, "unknown"),
    ],
)
def test_state_of_a_feature(tmp_path: Path, feature: str, files: dict[str, str], state: str) -> None:
    assert Kernel([], {}, False, make_root(tmp_path, files)).state_of(feature) == state


def test_absent_features_are_all_named(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"proc/config.gz": "CONFIG_VETH=y\n"})
    with pytest.raises(TrainyardError, match=r"lacks: overlay, vxlan\..*machine that runs it"):
        Kernel(["overlay", "veth", "vxlan"], {}, False, root).plan()


def test_modules_are_loaded_only_where_there_are_some(tmp_path: Path) -> None:
    root = make_root(tmp_path, {f"{MODULES}/modules.dep": "kernel/fs/overlayfs/overlay.ko:\n"})
    plan = Kernel(["overlay"], {}, False, root).plan()
    assert [step.what for step in plan.steps] == ["Load the kernel module overlay"]


def test_a_feature_that_nothing_tells_of_is_a_warning(tmp_path: Path) -> None:
    kernel = Kernel(["veth"], {}, False, make_root(tmp_path, {}))
    assert not kernel.plan().changed
    assert "veth" in kernel.warnings[0]


def test_sysctls_are_set_once(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"proc/sys/net/ipv4/ip_forward": "0\n", "proc/sys/net/ipv4/tcp_rmem": "4096\t1\t2\n"})
    kernel = Kernel([], {"net.ipv4.ip_forward": "1", "net.ipv4.tcp_rmem": "4096 1 2"}, False, root)
    plan = kernel.plan()
    assert plan.diff()["before"] == {"net.ipv4.ip_forward": "0"}
    plan.execute()
    assert not kernel.plan().changed


@pytest.mark.parametrize(("now", "steps"), [("128", 1), ("8192", 0), ("65536", 0), ("", 1)])
def test_a_limit_of_inotify_is_only_raised(tmp_path: Path, now: str, steps: int) -> None:
    name = "fs.inotify.max_user_instances"
    path = tmp_path / "proc/sys/fs/inotify/max_user_instances"
    path.parent.mkdir(parents=True)
    path.write_text(f"{now}\n")
    plan = Kernel([], {name: "8192"}, swap_off=False, root=str(tmp_path)).plan()
    assert len(plan.steps) == steps


def test_an_unknown_sysctl_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"no sysctl net\.ipv4\.ip_foward.*base_sysctls"):
        Kernel([], {"net.ipv4.ip_foward": "1"}, False, make_root(tmp_path, {})).plan()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
        ("net/ipv4/conf/eth0.5/rp_filter", "net/ipv4/conf/eth0.5/rp_filter"),
        ("net.ipv4.conf.eth0/5.rp_filter", "net/ipv4/conf/eth0.5/rp_filter"),
    ],
)
def test_sysctl_path(name: str, path: str) -> None:
    assert sysctl_path(name) == path


def test_swap_goes_now_and_at_boot(tmp_path: Path) -> None:
    fstab = "UUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0\n# UUID=3 none swap sw 0 0\n"
    root = make_root(tmp_path, {"proc/swaps": "Filename\n/dev/sda2 partition 1 0 -2\n", "etc/fstab": fstab})
    plan = Kernel([], {}, True, root).plan()
    assert [step.what for step in plan.steps] == ["Turn swap off", "Mask swap.target", "Disable swap in /etc/fstab"]
    plan.steps[-1].act()
    assert (tmp_path / "etc/fstab").read_text() == without_swap(fstab)
    assert without_swap(fstab).splitlines()[1:] == [
        "# trainyard: swap is off: UUID=2 none swap sw 0 0",
        "# UUID=3 none swap sw 0 0",
    ]
    assert not Kernel([], {}, False, root).plan().changed


def test_a_containers_swap_is_its_machines(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"proc/swaps": "Filename\n/dev/sda2 x 1 0 -2\n", "run/systemd/container": "podman\n"})
    kernel = Kernel([], {}, True, root)
    assert not kernel.plan().changed
    assert "/dev/sda2" in kernel.warnings[0]


@pytest.mark.parametrize(
    ("container", "masked", "service", "steps"),
    [
        (False, False, False, ["Mask swap.target"]),
        (False, True, False, []),
        (False, True, True, ["Disable zramswap.service"]),
        (True, False, True, []),
    ],
)
def test_swap_that_no_line_of_fstab_names_stays_off_at_boot(
    container: bool, masked: bool, service: bool, steps: list[str], tmp_path: Path
) -> None:
    root = make_root(tmp_path, {"run/systemd/container": "podman\n"} if container else {})
    units = tmp_path / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    if masked:
        (units / "swap.target").symlink_to("/dev/null")
    if service:
        (units / "multi-user.target.wants/zramswap.service").symlink_to("/usr/lib/systemd/system/zramswap.service")
    assert [step.what for step in Kernel([], {}, True, root).plan().steps] == steps
    assert not Kernel([], {}, False, root).plan().changed
