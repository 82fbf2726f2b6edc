"""The disks of machines, made without a mount."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.unit.bundle.test_builders import artefact, context, needs, output
from trainyard.bundle.build import disk
from trainyard.bundle.lockfile import Artefact
from trainyard.core.errors import TrainyardError

__all__ = ["context"]


def machine_root(folder: Path, *names: str) -> Artefact:
    """A recipe whose root file system holds these files."""
    with tarfile.open(folder / "made" / "rootfs.tar", "w") as archive:
        for name in ("etc/hostname", *names):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    return artefact("disk", {"rootfs": "artefact:program/rootfs.tar", "files": {"/etc/tool.conf": "project:tool.conf"}})


@needs("mke2fs", "debugfs", "tar")
def test_a_disk_holds_the_root_and_nothing_that_belongs_to_one_machine(context, tmp_path) -> None:
    own = ("etc/machine-id", "etc/ssh/ssh_host_ed25519_key")
    recipe = machine_root(tmp_path, "boot/vmlinuz-6.12", "boot/initrd.img-6.12", *own)
    facts = disk.disk(recipe, tmp_path / "out", context)
    assert (tmp_path / "out/vmlinuz").read_text() == "boot/vmlinuz-6.12"
    assert (tmp_path / "out/initrd.img").read_text() == "boot/initrd.img-6.12"
    image = str(tmp_path / "out/disk.raw")
    assert facts == {"bytes": os.stat(image).st_size}
    assert output("debugfs", "-R", "cat /etc/tool.conf", image) == "a = 1\n"
    assert "ssh_host" not in output("debugfs", "-R", "ls -p /etc/ssh", image)
    assert output("debugfs", "-R", "cat /etc/machine-id", image) == ""
    assert not (tmp_path / "cache/work/disk-tool").exists()


def test_a_disk_without_a_kernel_is_refused(context, tmp_path) -> None:
    with pytest.raises(TrainyardError, match="has no boot/vmlinuz"):
        disk.disk(machine_root(tmp_path), tmp_path / "out", context)
