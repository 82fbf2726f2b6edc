"""Pythons that tests start."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path


def without_checkout(folder: Path) -> str:
    """Make an environment with the locked packages, as on the host of a schedule, that knows no checkout.

    :returns: path of its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (packages,) = folder.glob("lib/python3*/site-packages")
    # Python takes the folder, and leaves out the .pth files in it.
    (packages / "packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return f"{folder}/bin/python"
