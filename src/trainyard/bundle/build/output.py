"""Build files with a program of the project that runs in a root file system, using the programs installed there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..context import Context
from ..lock import Artefact
from ..program import run

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
