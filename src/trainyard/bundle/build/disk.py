"""Build the disk of a machine, and files that a program of the project writes.

The disk is a root file system with its own kernel, as an ext4 image made without mounting. The program runs in a root
file system, and uses the programs installed there.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..build_program import run
from ..context import EPOCH, Context
from ..lockfile import Artefact

MIB = 1 << 20
SPARE = 1.15
"""Factor for the overhead of ext4. The machine's own disk is larger, and the file system grows to fill it."""
UUID = "8f6a2f0e-5c0b-4c55-9e6f-1d6f6f1b6a01"
"""UUID of all images, so that equal inputs give equal bytes."""

OWN_TO_ONE = ("etc/ssh/ssh_host_*", "etc/machine-id", "var/lib/dbus/machine-id")
"""Files that must be unique per machine. The lab supplies the SSH keys, and systemd creates the ID at first boot."""


def disk(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Build a machine's disk (kind `disk`): `disk.raw`, with its `vmlinuz` and `initrd.img`.

    Recipe: `rootfs` (reference to a tar archive with a kernel), `files` (path on the machine -> reference), `enable`
    and `disable` (systemd units).
    """
    recipe = artefact.recipe
    root = context.cache / "work" / f"disk-{artefact.name}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True, mode=0o755)
    archive = context.resolve(recipe["rootfs"])
    run(["tar", "--extract", "--numeric-owner", f"--file={archive}", f"--directory={root}"], timeout=300)
    context.copy(recipe.get("files", {}), root)
    for pattern in OWN_TO_ONE:
        for path in root.glob(pattern):
            path.unlink()
    (root / "etc/machine-id").touch()
    for verb in ("enable", "disable"):
        if recipe.get(verb):
            run(["chroot", str(root), "systemctl", "--quiet", verb, *recipe[verb]], timeout=60)
    for name, pattern in (("vmlinuz", "boot/vmlinuz-*"), ("initrd.img", "boot/initrd.img-*")):
        shutil.copyfile(_newest(root, pattern, archive), out / name)
    used = int(run(["du", "--summarize", "--block-size=1", str(root)], timeout=120).stdout.split()[0])
    image = out / "disk.raw"
    with image.open("wb") as stream:
        stream.truncate((int(used * SPARE) // MIB + 64) * MIB)
    argv = ["mke2fs", "-q", "-t", "ext4", "-U", UUID, "-E", f"hash_seed={UUID},root_owner=0:0", "-m", "1"]
    run([*argv, "-d", str(root), str(image)], timeout=300, env={"E2FSPROGS_FAKE_TIME": str(EPOCH)})
    shutil.rmtree(root)
    return {"bytes": image.stat().st_size}


def _newest(root: Path, pattern: str, archive: Path) -> Path:
    found = sorted(root.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise TrainyardError(
            f"The root file system {archive} has no {pattern}.", remedy="Add a kernel package to its entry."
        )
    return found[-1]


TIMEOUT = 900
"""Seconds for the program."""


def output(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Run a program and keep its output files (kind `program_output`). It gets an empty folder, and no devices.

    Recipe: `rootfs` (reference to a tar archive), `program` (reference to a file that can be executed there).

    :raises TrainyardError: the program writes nothing.
    """
    root = context.cache / "work" / f"root-{artefact.name}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True, mode=0o755)
    archive = context.resolve(artefact.recipe["rootfs"])
    argv = ["tar", "--extract", "--numeric-owner", "--exclude=./dev/*", f"--file={archive}", f"--directory={root}"]
    run(argv, timeout=300)
    shutil.copy(context.resolve(artefact.recipe["program"]), root / "program")
    (root / "program").chmod(0o755)
    run(["chroot", str(root), "/program", "/output"], timeout=TIMEOUT, env={"LC_ALL": "C.UTF-8", "HOME": "/"})
    if not any((root / "output").glob("*")):
        raise TrainyardError(f"The program of {artefact.name} wrote no files.")
    shutil.copytree(root / "output", out, dirs_exist_ok=True)
    shutil.rmtree(root)
    return {"count": sum(path.is_file() for path in out.rglob("*"))}
