"""Identity of the nodes: SSH keys, pinned host keys, names."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.plan import Step
from .lab_model import Lab, Node

HOME = Path("/var/lib/trainyard")
"""Default folder for the state of labs."""


def plan_keys(lab: Lab) -> list[Step]:
    """Plan to generate missing SSH key pairs, and to write the list of known hosts."""
    wanted = {lab.ssh_key: f"{lab.name} lab", **{lab.host_key(node): node.name for node in lab.nodes}}
    steps = [
        Step(f"Generate the SSH key {path.name}", partial(_generate, path, comment))
        for path, comment in wanted.items()
        if not path.exists()
    ]
    if steps or _pinned(lab) != _wanted_pins(lab):
        steps.append(Step("Pin the nodes' host keys", lambda: _pin(lab)))
    return steps


def plan_marker(lab: Lab) -> list[Step]:
    """Plan to mark the state directory as this lab's.

    :raises TrainyardError: the folder is not empty and does not belong to this lab.
    """
    if is_ours(lab):
        return []
    if lab.state_dir.exists() and any(lab.state_dir.iterdir()):
        raise _not_ours(lab)
    return [Step(f"Mark {lab.state_dir} as the lab's folder", lambda: _mark(lab))]


def is_ours(lab: Lab) -> bool:
    """Return whether the state directory is this lab's: it has the marker, or the key of a lab without a marker."""
    try:
        return lab.marker.read_text(encoding="utf-8").strip() == lab.name
    except OSError:
        pass
    try:
        return Path(f"{lab.ssh_key}.pub").read_text(encoding="utf-8").strip().endswith(f" {lab.name} lab")
    except OSError:
        return False


def plan_state_removal(lab: Lab) -> list[Step]:
    """Plan to remove the state directory, and this project's folder if that is empty then.

    :raises TrainyardError: the folder is not the lab's.
    """
    if lab.state_dir.exists() and not is_ours(lab):
        raise _not_ours(lab)

    def remove() -> None:
        shutil.rmtree(lab.state_dir)
        if lab.state_dir.parent == HOME and not any(HOME.iterdir()):
            HOME.rmdir()

    return [Step(f"Remove {lab.state_dir}", remove)] if lab.state_dir.exists() else []


def identity(lab: Lab, node: Node) -> bytes:
    """Return the identity of a node as a tar stream: its host key, the lab's public key, its name.

    It includes /etc/hosts, because the engine would rewrite that at each start and drop entries that roles added.
    """
    private, public = lab.host_key(node), Path(f"{lab.host_key(node)}.pub")
    files = {
        "etc/ssh/ssh_host_ed25519_key": (0o600, private.read_bytes()),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, public.read_bytes()),
        "etc/hosts": (0o644, f"127.0.0.1 localhost\n{node.address} {node.name}\n".encode()),
        "root/.ssh/authorized_keys": (0o600, Path(f"{lab.ssh_key}.pub").read_bytes()),
    }
    if node.kind == "machine":
        # The engine configures these for a container.
        network = f"Address={node.address}/{lab.subnet.prefixlen}\nGateway={lab.gateway}\n"
        unit = f"[Match]\nName=eth0\n\n[Network]\n{network}"
        files |= {
            "etc/hostname": (0o644, f"{node.name}\n".encode()),
            "etc/resolv.conf": (0o644, f"nameserver {lab.gateway}\nsearch .\n".encode()),
            "etc/systemd/network/10-lab.network": (0o644, unit.encode()),
        }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for place, (mode, data) in files.items():
            member = tarfile.TarInfo(place)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _mark(lab: Lab) -> None:
    lab.state_dir.mkdir(parents=True, exist_ok=True)
    lab.state_dir.chmod(0o755)
    lab.marker.write_text(f"{lab.name}\n", encoding="utf-8")


def _not_ours(lab: Lab) -> TrainyardError:
    return TrainyardError(
        f"The folder {lab.state_dir} does not belong to the lab {lab.name}: it lacks the marker {lab.marker.name}.",
        remedy="Set lab_state_dir to a folder that does not exist yet.",
    )


def _generate(path: Path, comment: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], timeout=20)


def _pinned(lab: Lab) -> dict[str, str]:
    """Return the known hosts, address -> line."""
    if not lab.known_hosts.exists():
        return {}
    lines = lab.known_hosts.read_text(encoding="utf-8").splitlines()
    return {line.split()[0]: line for line in lines if line}


def _wanted_pins(lab: Lab) -> dict[str, str]:
    """Return the known hosts with those of this call's nodes. Other lines are kept: inventories may share a lab."""
    pins = _pinned(lab)
    for node in lab.nodes:
        kind, key, *_ = Path(f"{lab.host_key(node)}.pub").read_text(encoding="utf-8").split()
        pins[node.address] = f"{node.address} {kind} {key}"
    return pins


def _pin(lab: Lab) -> None:
    _write_pins(lab, _wanted_pins(lab))


def _write_pins(lab: Lab, pins: Mapping[str, str]) -> None:
    staged = lab.known_hosts.with_suffix(".new")
    staged.write_text("".join(f"{pins[address]}\n" for address in sorted(pins)), encoding="utf-8")
    staged.rename(lab.known_hosts)


def forget(lab: Lab, node: Node) -> None:
    for path in (lab.host_key(node), Path(f"{lab.host_key(node)}.pub")):
        path.unlink(missing_ok=True)
    _write_pins(lab, {address: line for address, line in _pinned(lab).items() if address != node.address})
