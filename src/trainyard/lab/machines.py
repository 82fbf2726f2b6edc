"""The lab's emulated machines: hosts with their own kernel, each a QEMU process on the lab's bridge."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import Step
from ..core.waiter import wait_until
from . import keys, network
from .lab_model import Lab, Node

PROGRAMS = ("qemu-system-x86_64", "qemu-img")
PROC = Path("/proc")
KVM = Path("/dev/kvm")
KVM_TIMEOUT = 8
"""Seconds within which a kernel without a root file system must start and panic; with KVM it takes two."""
STOP_TIMEOUT = 10
"""Seconds to wait for a machine's process to end before it is killed."""

ACCELERATORS = {
    "kvm": ["-accel", "kvm", "-cpu", "host"],
    # With cx16, Debian 13's cloud kernel panics in most boots under software emulation. Richer CPU models are slower.
    "tcg": ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "qemu64,-cx16"],
}
KERNEL = "root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=-1"
"""The kernel's command line. A panic causes a reboot, so that a failed boot is retried."""


def folder(lab: Lab, name: str) -> Path:
    """Return the folder of a machine's files: disk, kernel, identity, console. It is not in the bundle's cache."""
    return lab.state_dir / "machines" / name


def processes(lab: Lab) -> dict[str, int]:
    """Return the process IDs of the lab's machines by name, identified by a unique path in their arguments."""
    found = {}
    for path in PROC.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if Path(words[0]).name == PROGRAMS[0] and "-pidfile" in words:
            place = Path(words[words.index("-pidfile") + 1])
            if place.parent.parent == lab.state_dir / "machines":
                found[place.parent.name] = int(path.parent.name)
    return found


def plan(lab: Lab, containers: Collection[str], bridge: str) -> tuple[list[Step], dict[str, str]]:
    """Plan to create or start machines; an existing one is never recreated.

    :param containers: names of the lab's containers.
    :param bridge: interface of the lab's network.
    :returns: steps, and the state of each machine by name.
    :raises TrainyardError: a host exists as the other kind, or runs from a disk that was removed.
    """
    _refuse_other_kind(lab, containers)
    if not lab.machines:
        return [], {}
    running, links = processes(lab), network.links()
    steps: list[Step] = []
    states: dict[str, str] = {}
    for node in lab.machines:
        disk = folder(lab, node.name) / "disk.qcow2"
        if node.name in running and not disk.exists():
            raise TrainyardError(
                f"The machine {node.name} runs from a disk that no longer exists: {disk}.",
                remedy=f"Shut it down (process {running[node.name]}). The next run recreates it with an empty disk.",
            )
        states[node.name] = "running" if node.name in running else "stopped" if disk.exists() else "absent"
        if states[node.name] == "absent":
            steps.append(Step(f"Create the machine {node.name} at {node.address}", partial(_create, lab, node)))
        if states[node.name] != "running":
            steps.append(Step(f"Start the machine {node.name}", partial(_start, lab, node)))
        elif not network.is_on(links, lab, node, bridge):
            steps.append(Step(f"Reattach {node.name} to the lab's bridge", partial(network.attach, lab, node)))
    return steps, states


def plan_removal(lab: Lab, names: Iterable[str]) -> list[Step]:
    """Plan to remove the given machines with their disks and network devices; the others stay."""
    running, links = processes(lab), network.links()
    steps = []
    for name in names:
        if name in running:
            steps.append(Step(f"Stop the machine {name}", partial(_stop, running[name])))
        if network.name(lab, name) in links:
            steps.append(Step(f"Remove the network device of {name}", partial(network.remove, lab, name)))
        if folder(lab, name).exists():
            steps.append(Step(f"Remove the disk of {name}", partial(shutil.rmtree, folder(lab, name))))
    return steps


def known(lab: Lab) -> list[str]:
    """Return the names of all machines of the lab, including those with only remains."""
    folders = (lab.state_dir / "machines").glob("*")
    return sorted({path.name for path in folders} | set(processes(lab)) | set(network.owners(network.links(), lab)))


def _refuse_other_kind(lab: Lab, containers: Collection[str]) -> None:
    for node in lab.nodes:
        found = "machine" if folder(lab, node.name).exists() else "container"
        exists = found == "machine" or lab.container(node) in containers
        if exists and found != node.kind:
            raise TrainyardError(
                f"{node.name} is a {found} of this lab, but its lab_kind is {node.kind}.",
                remedy="Use another name for the new host, or take the lab down first (make lab-down).",
            )


def _create(lab: Lab, node: Node) -> None:
    if not (lab.machine.image / "disk.raw").is_file():
        raise TrainyardError(
            f"The disk of the lab's machines is not in the bundle: {lab.machine.image / 'disk.raw'}.",
            remedy="Set bundle_artefacts_also to [disk_lab_machine].",
        )
    place = folder(lab, node.name)
    staged = place.with_name(f"{node.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True, mode=0o700)
    for name in ("disk.raw", "vmlinuz", "initrd.img"):
        _link(lab.machine.image / name, staged / name)
    identity = staged / "identity.tar"
    identity.touch(mode=0o600)
    identity.write_bytes(keys.identity(lab, node))
    overlay = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "disk.raw", "disk.qcow2"]
    run([*overlay, f"{lab.machine.disk_gib}G"], timeout=60, cwd=str(staged))
    # Rename atomically; remains of a machine without a disk are removed.
    shutil.rmtree(place, ignore_errors=True)
    staged.rename(place)


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it if that fails, because the bundle's cache may be emptied at any time."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _start(lab: Lab, node: Node) -> None:
    network.attach(lab, node)
    place = folder(lab, node.name)
    try:
        run(arguments(lab, node, accelerator(lab.machine.accelerator, place)), timeout=60)
    except CommandError as error:
        raise TrainyardError(
            f"The machine {node.name} did not start: {error.message}",
            remedy=f"Lower lab_machine_memory_mib ({lab.machine.memory_mib}) or lab_machine_cpus "
            f"({lab.machine.cpus}), or set another lab_machine_accelerator ({lab.machine.accelerator}).",
        ) from error


def arguments(lab: Lab, node: Node, accelerated_by: str) -> list[str]:
    """Return QEMU's command line. The process becomes a daemon, so that it outlives its parent."""
    place = str(folder(lab, node.name)).replace(",", ",,")
    return [
        *(PROGRAMS[0], "-name", lab.container(node), "-machine", "q35", *ACCELERATORS[accelerated_by]),
        *("-smp", str(lab.machine.cpus), "-m", f"{lab.machine.memory_mib}M"),
        *("-kernel", f"{folder(lab, node.name)}/vmlinuz", "-initrd", f"{folder(lab, node.name)}/initrd.img"),
        *("-append", KERNEL, "-nodefaults", "-display", "none"),
        # Data that the machine has flushed survives even if QEMU is killed.
        *("-drive", f"file={place}/disk.qcow2,if=virtio,format=qcow2,cache=writeback"),
        *("-drive", f"file={place}/identity.tar,if=virtio,format=raw,readonly=on"),
        *("-netdev", f"tap,id=lab,ifname={network.name(lab, node.name)},script=no,downscript=no"),
        # With checksum offload, checksums inside VXLAN are wrong, and Services do not answer over UDP.
        *("-device", f"virtio-net-pci,netdev=lab,mac={node.mac},romfile=,csum=off", "-device", "virtio-rng-pci"),
        *("-chardev", f"file,id=console,path={place}/console.log,append=on", "-serial", "chardev:console"),
        *("-pidfile", f"{folder(lab, node.name)}/pid", "-daemonize"),
    ]


def accelerator(wanted: str, place: Path) -> str:
    """Return the accelerator. V(auto) means KVM if a kernel really starts with it; the device alone proves nothing.

    :param place: folder of a machine, whose kernel is started as a test.
    """
    if wanted != "auto":
        return wanted
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    console = place / "kvm.log"
    argv = [PROGRAMS[0], "-machine", "q35", *ACCELERATORS["kvm"], "-m", "256M", "-nodefaults", "-display", "none"]
    argv += ["-kernel", str(place / "vmlinuz"), "-append", "console=ttyS0 panic=-1", "-no-reboot"]
    try:
        run([*argv, "-serial", f"file:{console}"], timeout=KVM_TIMEOUT, outlives=False)
    except CommandError:
        return "tcg"
    return "kvm" if "Linux version" in console.read_text(encoding="utf-8", errors="replace") else "tcg"


def _stop(pid: int) -> None:
    # The disk is removed next, so an orderly shutdown would save nothing.
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
            wait_until(
                (PROC / str(pid) / "exe").exists,
                lambda alive: not alive,
                what=f"QEMU's process {pid} to end",
                timeout=STOP_TIMEOUT,
                interval=0.1,
            )
        except ProcessLookupError:
            return
        except TrainyardError:
            if number == signal.SIGKILL:
                raise
