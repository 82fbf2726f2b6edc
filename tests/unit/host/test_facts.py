"""host_preflight: what is read from a host, and which hosts are refused with which words."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host.facts import Host, Needs, node_address, observe, problems, space_findings, space_problems
from trainyard.host.preflight_checks import refuse

GOOD = Host("debian-13", "6.18", 4096, 2.0, {"/var/lib": 20000}, "", True, True, True, True, cpu_flags=["avx", "sse"])
NEEDS = Needs(1700, 2.0, {"/var/lib": 5120}, ["debian-12", "debian-13"], cpu_flags=["avx"], cgroup=2)
THRESHOLDS = {"nodefs.available": 10.0, "imagefs.available": 15.0}


def make_root(root: Path, **files: str) -> str:
    contents = {
        "etc/os-release": 'PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="13"\n',
        "proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 1 kB\n",
        "proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\n",
        **files,
    }
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(root)


def test_a_machine_is_read(tmp_path: Path) -> None:
    release = os.uname().release
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    host = observe(["/var/lib/not/there"], make_root(tmp_path, **{f"lib/modules/{release}/modules.dep": ""}))
    assert host.system == "debian-13"
    assert host.memory_mib == 4096
    assert host.free_mib["/var/lib/not/there"] > 0
    assert (host.container, host.clock_settable, host.modules_directory, host.systemd) == ("", True, True, True)


@pytest.mark.parametrize(
    ("files", "attribute", "value"),
    [
        ({"run/systemd/container": "podman\n"}, "clock_settable", False),
        ({"run/systemd/container": "podman\n"}, "container", "podman"),
        ({"proc/self/status": "CapEff:\t0000000000000000\n"}, "clock_settable", False),
        ({"sys/fs/cgroup/memory.max": "1073741824\n"}, "memory_mib", 1024),
        ({"sys/fs/cgroup/memory.max": "max\n"}, "memory_mib", 4096),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, "memory_mib", 4096),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, "cpus", 0.5),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, "cpus", float(len(os.sched_getaffinity(0)))),
        ({"etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n'}, "system", "ubuntu-24.04"),
        ({"etc/os-release": ""}, "system", "unknown-unknown"),
    ],
)
def test_limits_and_abilities_are_read(tmp_path: Path, files: dict[str, str], attribute: str, value: object) -> None:
    assert getattr(observe([], make_root(tmp_path, **files)), attribute) == value


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (replace(GOOD, memory_mib=512), ["512 MiB of memory", "1700", "base_memory_min_mib"]),
        (replace(GOOD, cpus=0.5), ["0.5 CPUs", "2 are needed", "base_cpu_min"]),
        (replace(GOOD, free_mib={"/var/lib": 3}), ["/var/lib has 3 MiB", "5120", "base_disk_free_min_mib"]),
        (replace(GOOD, system="alpine-3"), ["alpine-3", "debian-13", "base_supported_systems"]),
        (replace(GOOD, root=False), ["root", "ansible_become"]),
        (replace(GOOD, systemd=False), ["systemd"]),
        (replace(GOOD, machine="aarch64"), ["aarch64", "x86_64"]),
        (replace(GOOD, cpu_flags=["sse4_2"]), ["no AVX", "CPU type to host", "base_cpu_flags to []"]),
        (replace(GOOD, cgroup=1), ["cgroup v1", "kubernetes_fail_cgroup_v1"]),
    ],
)
def test_refusals_name_value_and_remedy(host: Host, words: list[str]) -> None:
    (problem,) = problems(host, NEEDS)
    assert all(word in str(problem) for word in words), problem


def test_all_problems_are_said_at_once_with_the_hosts_name() -> None:
    found = problems(replace(GOOD, memory_mib=1, cpus=1.0), NEEDS)
    with pytest.raises(TrainyardError, match=r"(?s)worker7 cannot be a node.*memory.*CPUs"):
        refuse("worker7", found)
    refuse("worker7", problems(GOOD, NEEDS))


def test_a_full_disk_refuses_a_new_host_and_not_a_node() -> None:
    full, new = replace(GOOD, free_mib={"/var/lib": 3}), Needs(1000, 1.0, {"/var/lib": 5120}, [GOOD.system])
    assert problems(full, new) == space_problems(full, new) != []
    assert [each.subject for each in space_findings(full, new)] == ["space on /var/lib"]
    assert problems(full, replace(new, in_use=True)) == []


@pytest.mark.parametrize(
    ("size", "free", "images", "thresholds", "signals"),
    [
        # 86 % full: above the kubelet's own threshold of 10 %, and below that of 15 % for images.
        (100_000, 14_000, 0, THRESHOLDS, ["imagefs.available"]),
        (100_000, 9_000, 0, THRESHOLDS, ["nodefs.available", "imagefs.available"]),
        # Enough space now, and not after the pull.
        (40_000, 11_000, 6_144, THRESHOLDS, ["imagefs.available"]),
        (40_000, 13_000, 6_144, THRESHOLDS, []),
        (100_000, 14_000, 6_144, {}, []),
        (100_000, 14_000, 0, {"imagefs.available": 5.0}, []),
    ],
)
def test_a_disk_on_which_the_kubelet_would_evict_pods(
    size: int, free: int, images: int, thresholds: dict[str, float], signals: list[str]
) -> None:
    space = {"/var/lib/kubelet": free, "/var/lib/containerd": free, "/var/lib": free}
    host = replace(GOOD, free_mib=space, size_mib=dict.fromkeys(space, size))
    needs = replace(NEEDS, images_mib=images, eviction=thresholds)
    found = problems(host, needs)
    assert [signal for signal in thresholds for each in found if signal in each.cause] == signals
    assert all("kubernetes_kubelet_config.evictionHard" in each.remedy for each in found)
    assert problems(host, replace(needs, in_use=True)) == []


def test_processor_and_machine_id_are_read(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": "processor: 0\nflags\t\t: fpu avx sse\n", "etc/machine-id": "0123456789abcdef\n"}
    host = observe([], make_root(tmp_path, **files))
    assert (list(host.cpu_flags), host.cgroup) == (["avx", "fpu", "sse"], 1)
    assert host.machine_id and "0123456789abcdef" not in host.machine_id
    assert observe([], make_root(tmp_path / "other")).machine_id == ""


@pytest.mark.parametrize(
    ("flags", "address"),
    [
        ('KUBELET_KUBEADM_ARGS="--node-ip=10.1.0.21 --v=2"\n', "10.1.0.21"),
        ('KUBELET_KUBEADM_ARGS="--node-ip=fd00::21"\n', "fd00::21"),
        ('KUBELET_KUBEADM_ARGS="--node-ip=1.2.3.4.5"\n', ""),
        ('KUBELET_KUBEADM_ARGS="--node-ip={{ 1 }}"\n', ""),
        ('KUBELET_KUBEADM_ARGS=""\n', ""),
        ("", ""),
    ],
)
def test_an_existing_node_keeps_its_address(tmp_path: Path, flags: str, address: str) -> None:
    assert node_address(make_root(tmp_path, **{"var/lib/kubelet/kubeadm-flags.env": flags})) == address


@pytest.mark.parametrize("files", [(), ("usr/sbin/NetworkManager", "etc/cloud/templates/hosts.debian.tmpl")])
def test_programs_that_would_undo_settings_are_seen(files: tuple[str, ...], tmp_path: Path) -> None:
    host = observe([], make_root(tmp_path, **dict.fromkeys(files, "")))
    assert (host.network_manager, host.hosts_template) == (bool(files), bool(files))


ENABLED = "etc/systemd/system/sysinit.target.wants/nftables.service"
CRI = "etc/containerd/conf.d/10-trainyard.toml"


@pytest.mark.parametrize(
    ("files", "flushes", "folder"),
    [
        ({}, False, ""),
        ({"etc/nftables.conf": "#!/usr/sbin/nft -f\n\nflush ruleset\n"}, False, ""),
        ({ENABLED: "", "etc/nftables.conf": "flush ruleset\n"}, True, ""),
        ({ENABLED: "", "etc/nftables.conf": "# flush ruleset\n"}, False, ""),
        ({CRI: "version = 3\n"}, False, "/etc/cni/net.d"),
        ({CRI: '[x.cni]\n  conf_dir = "/etc/cni/own.d"\n'}, False, "/etc/cni/own.d"),
    ],
)  # fmt: skip
def test_files_about_the_network_are_read(files: dict[str, str], flushes: bool, folder: str, tmp_path: Path) -> None:
    host = observe([], make_root(tmp_path, **files))
    assert (host.flushes, host.cni_dir, host.firewall) == (flushes, folder, False)
