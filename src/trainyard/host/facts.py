"""The properties of a host that matter for a cluster node, and the refusal of unsuitable hosts.

Parts: the time service; the facts. If a time service other than chrony works, the host keeps it, with its servers.

All facts come from /proc, /sys and files below a root that tests replace.
"""

from __future__ import annotations

import ctypes
import hashlib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..core.finding import Finding
from ..core.waiter import CLOCK, Clock
from .preflight_checks import Reason, reason

STA_UNSYNC = 0x0040
"""Bit of `status` for an unsynchronised clock (linux/timex.h, adjtimex(2))."""

TIMEX_BYTES = 256
"""Buffer size, larger than `struct timex`, which has 208 bytes if a long has eight."""

STATUS_WORD = 40 // ctypes.sizeof(ctypes.c_int)
"""Index of `status` in the structure: after `modes`, padded, and four longs."""

TIMESYNCD = "run/systemd/timesync"
"""Folder that exists while systemd-timesyncd runs; it creates `synchronized` there after it has set the clock."""

BOOT_SECONDS = 30.0
"""Seconds after boot by which a time service has queried its servers."""

CHRONYD = "usr/sbin/chronyd"


def is_kept(root: Path = Path("/"), clock: Clock = CLOCK) -> bool:
    """Return whether a time service other than chrony keeps the clock; on a host that just booted, wait for it first.

    The kernel forgets within a day that a clock was synchronised. A service that has worked since boot is kept, even
    if its server is unreachable for so long.
    """
    if (root / CHRONYD).exists():
        return False
    # The kernel's monotonic clock begins with the boot.
    while not (found := is_synchronised() or (root / TIMESYNCD / "synchronized").exists()):
        if not (root / TIMESYNCD).is_dir() or clock.monotonic() > BOOT_SECONDS:
            break
        clock.sleep(1.0)
    return found


def is_synchronised() -> bool:
    """Return whether the kernel reports a synchronised clock; false if it reports nothing."""
    timex = (ctypes.c_int * (TIMEX_BYTES // ctypes.sizeof(ctypes.c_int)))()
    try:
        # With `modes` 0 the call sets nothing and needs no privilege.
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return False
    return state >= 0 and not timex[STATUS_WORD] & STA_UNSYNC


CAP_SYS_TIME = 25
"""Bit number of the capability to set the clock (capabilities(7), linux/capability.h)."""

NO_LIMIT = 1 << 60
"""cgroup v1 reports "no limit" as a number close to 2**63."""

HOSTS_TEMPLATE = "etc/cloud/templates/hosts.debian.tmpl"
"""Template of cloud-init for Debian and Ubuntu (cc_update_etc_hosts, `manage_etc_hosts: true`)."""
FIREWALL = "etc/trainyard/firewall.nft"
FLUSH = re.compile(r"^\s*flush\s+ruleset", re.MULTILINE)
CRI = "etc/containerd/conf.d/10-trainyard.toml"
"""Each node of this project has this file, with the marker; workers have no other record."""
CNI_DIR = "/etc/cni/net.d"
"""containerd's own default, which nodes of earlier versions have."""
CNI_SETTING = re.compile(r'^\s*conf_dir = "(/[\w./-]+)"$', re.MULTILINE)

MACHINE = "x86_64"
"""The architecture of all images (oci/layout.py)."""

SIGNALS = {"nodefs.available": "/var/lib/kubelet", "imagefs.available": "/var/lib/containerd"}
"""Eviction signal of the kubelet -> path whose file system it measures."""


@dataclass(frozen=True)
class Host:
    """Observed properties of a host.

    :param system: distribution and version, `debian-13`.
    :param memory_mib: memory available to processes in MiB, limited by the cgroup.
    :param cpus: CPUs available to processes, limited by the cgroup's quota.
    :param free_mib: path -> free space in MiB.
    :param container: container manager that runs this host; empty outside containers.
    :param clock_settable: whether this host is not a container and may set its clock.
    :param clock_kept: whether a time service other than chrony keeps the clock.
    :param modules_directory: whether modules for the running kernel are installed.
    :param systemd: whether systemd is the service manager.
    :param certificate_store: whether `update-ca-certificates` is installed.
    :param machine: hardware name as in `uname -m`; `cpu_flags`: flags of the first processor (/proc/cpuinfo).
    :param size_mib: path -> size of its file system in MiB.
    :param cgroup: version of the cgroup hierarchy that the kubelet would use, 1 or 2.
    :param machine_id: digest of /etc/machine-id, to compare hosts; empty without one.
    :param network_manager: whether NetworkManager is installed, which would manage the interfaces of pods.
    :param cni_dir: folder of the CNI files that this project has configured in containerd; empty before.
    :param flushes: whether a start of nftables.service deletes the rules of kube-proxy and Calico.
    :param firewall: whether the role `firewall` keeps a table for the host.
    :param hosts_template: whether cloud-init has a template from which it writes /etc/hosts at each boot.
    """

    system: str
    kernel: str
    memory_mib: int
    cpus: float
    free_mib: Mapping[str, int]
    container: str
    clock_settable: bool
    modules_directory: bool
    systemd: bool
    root: bool
    certificate_store: bool = True
    clock_kept: bool = False
    machine: str = "x86_64"
    cpu_flags: Sequence[str] = ()
    size_mib: Mapping[str, int] = field(default_factory=dict)
    cgroup: int = 2
    machine_id: str = ""
    network_manager: bool = False
    hosts_template: bool = False
    firewall: bool = False
    flushes: bool = False
    cni_dir: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Needs:
    """Requirements. Refusals name the variable that sets each of them.

    :param in_use: the host is already a node, so too little space is only a warning: the run may have to repair it.
    :param cpu_flags: required flags of the processor.
    :param images_mib: size of the site's images, which a new node pulls.
    :param eviction: signal -> threshold of the kubelet in percent, for the signals of `SIGNALS`.
    :param cgroup: lowest version of the cgroup hierarchy.
    """

    memory_mib: int
    cpus: float
    disk_mib: Mapping[str, int]
    systems: Sequence[str]
    in_use: bool = False
    cpu_flags: Sequence[str] = ()
    images_mib: int = 0
    eviction: Mapping[str, float] = field(default_factory=dict)
    cgroup: int = 1


def observe(paths: Sequence[str], root: str = "/") -> Host:
    """Read the properties of the host.

    :param paths: paths whose free space is read; for a missing one, that of its nearest existing parent.
    """
    base = Path(root)
    kernel = os.uname().release
    container = text_of(base / "run/systemd/container").strip()
    space = {path: _space_mib(base / path.lstrip("/")) for path in paths}
    return Host(
        system=_system(base),
        kernel=kernel,
        memory_mib=_memory_mib(base),
        cpus=_cpus(base),
        free_mib={path: free for path, (_, free) in space.items()},
        container=container,
        clock_settable=not container and _has_capability(base, CAP_SYS_TIME),
        modules_directory=(base / "lib/modules" / kernel / "modules.dep").exists(),
        systemd=(base / "run/systemd/system").is_dir(),
        root=os.geteuid() == 0,
        clock_kept=is_kept(base),
        certificate_store=(base / "usr/sbin/update-ca-certificates").exists(),
        machine=os.uname().machine,
        cpu_flags=_cpu_flags(base),
        size_mib={path: size for path, (size, _) in space.items()},
        cgroup=2 if (base / "sys/fs/cgroup/cgroup.controllers").exists() else 1,
        machine_id=_machine_id(base),
        network_manager=(base / "usr/sbin/NetworkManager").exists(),
        hosts_template=(base / HOSTS_TEMPLATE).is_file(),
        firewall=(base / FIREWALL).is_file(),
        flushes=_flushes(base),
        cni_dir=_cni_dir(base),
    )


def problems(host: Host, needs: Needs) -> list[Reason]:
    """Return all reasons why this host cannot be a node."""
    found = []
    if not host.root:
        found.append(reason("root"))
    if not host.systemd:
        found.append(reason("systemd"))
    if host.system not in needs.systems:
        found.append(reason("system", found=host.system, supported=", ".join(needs.systems)))
    if host.machine != MACHINE:
        found.append(reason("architecture", found=host.machine))
    if lacking := [flag for flag in needs.cpu_flags if flag not in host.cpu_flags]:
        found.append(reason("cpu_flags", lacking=" and no ".join(flag.upper() for flag in lacking)))
    if host.memory_mib < needs.memory_mib:
        found.append(reason("memory", found=host.memory_mib, least=needs.memory_mib))
    if host.cpus < needs.cpus:
        found.append(reason("cpus", found=f"{host.cpus:g}", least=f"{needs.cpus:g}"))
    if host.cgroup < needs.cgroup:
        found.append(reason("cgroup"))
    return found if needs.in_use else found + space_problems(host, needs) + _share_problems(host, needs)


def space_problems(host: Host, needs: Needs) -> list[Reason]:
    """Return the paths with too little space: a refusal for a new host, a warning for one in use."""
    return [
        reason("space", path=path, found=host.free_mib[path], least=least)
        for path, least in needs.disk_mib.items()
        if host.free_mib[path] < least
    ]


def _share_problems(host: Host, needs: Needs) -> list[Reason]:
    """Return the file systems on which the kubelet would evict pods as soon as the site's images are there.

    It measures both signals in percent of the file system's size (kubelet's eviction manager). A node whose images are
    on the same file system as its volumes has the same numbers for both.
    """
    found = []
    for signal, path in SIGNALS.items():
        size, free, threshold = host.size_mib.get(path, 0), host.free_mib.get(path, 0), needs.eviction.get(signal, 0.0)
        images = needs.images_mib if signal.startswith("imagefs") else 0
        left = 100 * (free - images) / size if size else 100.0
        if left < threshold:
            values = {
                "used": round(100 * (1 - free / size)),
                "left": max(0, round(left)),
                "threshold": f"{threshold:g}",
            }
            found.append(reason("space_share", path=path, signal=signal, images=images, **values))
    return found


def space_findings(host: Host, needs: Needs) -> list[Finding]:
    """Return the same as findings, for check mode on a host in use."""
    return [
        Finding(f"space on {path}", f"{host.free_mib[path]} MiB free", f"{least} MiB or more")
        for path, least in needs.disk_mib.items()
        if host.free_mib[path] < least
    ]


def text_of(path: Path) -> str:
    """Return the text of a file, for example in /proc or /sys; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _system(base: Path) -> str:
    values = dict(
        line.split("=", 1) for line in text_of(base / "etc/os-release").splitlines() if "=" in line and line[0] != "#"
    )
    return "-".join(values.get(key, "unknown").strip("\"'") for key in ("ID", "VERSION_ID"))


def _memory_mib(base: Path) -> int:
    values = dict(line.split(":", 1) for line in text_of(base / "proc/meminfo").splitlines() if ":" in line)
    total = int(values.get("MemTotal", "0 kB").split()[0]) * 1024
    for limit_file in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = text_of(base / limit_file).strip()
        if limit.isdigit() and int(limit) < NO_LIMIT:
            total = min(total, int(limit))
    return total >> 20


def _cpus(base: Path) -> float:
    count = float(len(os.sched_getaffinity(0)))
    quota, _, period = text_of(base / "sys/fs/cgroup/cpu.max").strip().partition(" ")
    if not quota:
        quota = text_of(base / "sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip()
        period = text_of(base / "sys/fs/cgroup/cpu/cpu.cfs_period_us").strip()
    return min(count, int(quota) / int(period)) if quota.isdigit() and period.isdigit() else count


def _space_mib(path: Path) -> tuple[int, int]:
    """Return size and free space of the file system of a path, or of its nearest existing parent."""
    while not path.exists():
        path = path.parent
    status = os.statvfs(path)
    return status.f_blocks * status.f_frsize >> 20, status.f_bavail * status.f_frsize >> 20


def _cpu_flags(base: Path) -> Sequence[str]:
    for line in text_of(base / "proc/cpuinfo").splitlines():
        if line.startswith("flags"):
            return sorted(line.partition(":")[2].split())
    return []


def _machine_id(base: Path) -> str:
    """Return a digest, because the identifier itself shall not leave the host (machine-id(5))."""
    text = text_of(base / "etc/machine-id").strip()
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def _flushes(base: Path) -> bool:
    """Return whether nftables.service is enabled with a file that begins by deleting all rules, as Debian's does."""
    enabled = any((base / "etc/systemd/system").glob("*.wants/nftables.service"))
    return enabled and bool(FLUSH.search(text_of(base / "etc/nftables.conf")))


def _cni_dir(base: Path) -> str:
    found = CNI_SETTING.search(text_of(base / CRI))
    return found[1] if found else CNI_DIR if (base / CRI).is_file() else ""


def _has_capability(base: Path, number: int) -> bool:
    for line in text_of(base / "proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


KUBELET_FLAGS = "var/lib/kubelet/kubeadm-flags.env"
"""File in which kubeadm keeps the flags of a node's kubelet."""
NODE_IP = re.compile(r"--node-ip=([0-9A-Fa-f.:]+)")


def node_address(root: str = "/") -> str:
    """Return the address of the node that this host is; empty if it is none, or if its kubelet chose the address."""
    found = NODE_IP.search(text_of(Path(root) / KUBELET_FLAGS))
    try:
        return str(ipaddress.ip_address(found[1])) if found else ""
    except ValueError:
        return ""
