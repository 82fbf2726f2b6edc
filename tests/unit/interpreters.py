"""Pythons that tests start."""

from __future__ import annotations

import shutil
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


def python_3_10() -> str:
    """Return the path of a Python 3.10; empty if this machine has none that starts."""
    # pyenv's program on the PATH starts only the versions that its user has chosen.
    installed = sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))
    for each in (shutil.which("python3.10"), *installed):
        if each and subprocess.run([each, "-c", ""], capture_output=True, timeout=60, check=False).returncode == 0:
            return str(each)
    return ""


PURE = (
    "_pytest",
    "ansible",
    "iniconfig",
    "jinja2",
    "markupsafe",
    "packaging",
    "pluggy",
    "py.py",
    "pygments",
    "pytest",
    "yaml",
)
"""Packages of pytest and of the tests that any Python can import, because their compiled parts are optional."""


def pure_packages(folder: Path) -> Path:
    """Fill a folder for PYTHONPATH of another Python, with which pytest starts there."""
    folder.mkdir()
    for name in PURE:
        (folder / name).symlink_to(Path(sysconfig.get_paths()["purelib"], name))
    # Before Python 3.11, pytest imports a package in place of these built-in classes.
    (folder / "exceptiongroup.py").write_text(
        "class BaseExceptionGroup(BaseException):\n    def __class_getitem__(cls, item):\n        return cls\n\n\n"
        "class ExceptionGroup(BaseExceptionGroup, Exception):\n    pass\n",
        encoding="utf-8",
    )
    return folder
