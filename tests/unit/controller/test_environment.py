"""A Python environment from a tar of wheels, made for real."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from trainyard.controller.python_environment import Environment, make_plan, version
from trainyard.core.errors import TrainyardError

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def wanted(tmp_path: Path) -> Environment:
    """One package of one module, in a tar as the bundle makes it."""
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy.py", "answer = 42\n")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "")
    tar = tmp_path / "wheels.tar"
    with tarfile.open(tar, "w") as archive:
        archive.add(wheel, "wheels/toy-1.0-py3-none-any.whl")
        # Whatever else is in it stays there.
        archive.add(wheel, "../../escape")
    return Environment(
        tmp_path / "place" / "environment",
        f"toy==1.0 --hash=sha256:{sha256(wheel)}\n",
        f"file://{tar}",
        sha256(tar),
        sys.executable,
    )


@pytest.mark.slow
def test_made_used_left_alone_and_made_anew(wanted: Environment) -> None:
    plan = make_plan(wanted, version(wanted))
    assert [step.what for step in plan.steps] == [
        f"Create a Python {PYTHON} environment of 1 locked files",
        f"Use the environment as {wanted.path}, and remove others",
    ]
    assert not wanted.path.parent.exists()
    plan.execute()
    answer = subprocess.run(
        [f"{wanted.path}/bin/python", "-c", "import toy; print(toy.answer)"], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "42\n"
    assert make_plan(wanted, PYTHON).steps == ()
    assert not (wanted.path.parents[2] / "escape").exists()

    # Another list, whose making was interrupted once.
    other = replace(wanted, requirements=wanted.requirements + "# a comment\n")
    first, second = make_plan(other, PYTHON).steps
    first.act()
    (next(path for path in wanted.folder.iterdir() if path != wanted.path.resolve()) / "complete").unlink()
    assert make_plan(wanted, PYTHON).steps == ()
    make_plan(other, PYTHON).execute()
    assert make_plan(other, PYTHON).steps == ()
    assert [path.name for path in wanted.folder.iterdir()] == [wanted.path.resolve().name]
    assert second.what.startswith("Use the environment")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "has the SHA-256"),
        pytest.param({"requirements": "toy==1.0 --hash=sha256:" + "0" * 64}, "DO NOT MATCH", marks=pytest.mark.slow),
        ({"url": "file:///nonexistent"}, "cannot be fetched"),
    ],
)
def test_what_is_not_what_was_locked_is_not_installed(
    wanted: Environment, change: dict[str, str], message: str
) -> None:
    with pytest.raises(TrainyardError, match=message):
        make_plan(replace(wanted, **change), PYTHON).execute()  # type: ignore[arg-type]
    assert not wanted.path.exists()


def test_a_python_for_which_nothing_is_locked_is_refused(wanted: Environment, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3.10\n", encoding="utf-8")
    old.chmod(0o755)
    with pytest.raises(TrainyardError, match=r"is Python 3.10, but packages are locked for 3.11"):
        version(replace(wanted, python=str(old)))
