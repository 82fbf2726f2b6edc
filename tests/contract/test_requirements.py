"""Tests that the locked Python packages are installable with every Python that a controller may have."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from checkout import ROOT, read_yaml
from packaging.requirements import Requirement

from engine import compat
from tools.compat_columns import PARTS

PYTHONS = ("3.11", "3.12", "3.13")
"""Debian 12, Ubuntu 24.04, Debian 13; the same as in the Makefile."""

LOCK = ROOT / "requirements.txt"
INSTALLED_ON_EACH = (LOCK, ROOT / "requirements-lock.txt")
"""Locks that are installed with any of these Pythons; the test packages only with the tester's."""
LOCKED = re.compile(r"^(?P<name>[a-z0-9._-]+)==(?P<version>\S+)", re.MULTILINE)


def _locked() -> dict[str, str]:
    return {found["name"]: found["version"] for found in LOCKED.finditer(LOCK.read_text(encoding="utf-8"))}


def test_makefile_takes_these_pythons() -> None:
    assert re.findall(r"python(3\.\d+)", (ROOT / "Makefile").read_text(encoding="utf-8")) == list(PYTHONS)


def test_everything_that_is_locked_is_what_make_lock_makes() -> None:
    """Each `.in` file has its lock, and `make lock` generates all of them."""
    made = re.search(r"^\tfor name in (.+); do", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert made
    assert sorted(made[1].split()) == sorted(path.stem for path in ROOT.glob("requirements*.in"))
    assert sorted(made[1].split()) == sorted(path.stem for path in ROOT.glob("requirements*.txt"))


@pytest.mark.parametrize("python", PYTHONS)
def test_no_package_needs_one_that_is_not_locked(python: str) -> None:
    """The dependencies of a package can depend on the Python version; the lock was made with the oldest."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    for name in _locked():
        for text in distribution(name).requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate(environment):
                assert re.sub(r"[._-]+", "-", needed.name).lower() in _locked(), f"{name} needs {text}"


def test_the_kit_of_gpu_proof_has_locked_wheels() -> None:
    """Its requirements are lines of the locks, so that `make lock` and a review of them cover the kit."""
    locked = LOCK.read_text(encoding="utf-8") + (ROOT / "requirements-lock.txt").read_text(encoding="utf-8")
    lines = (ROOT / "roles/bundle/files/gpu_proof/requirements.txt").read_text(encoding="utf-8").splitlines()[1:]
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    assert len(entries) == 2
    assert [entry for entry in entries if f"{entry}\n" not in locked] == []


def _image(name: str) -> dict[str, str]:
    """Return the locked versions of an image of the trainings."""
    text = (ROOT / "workloads/images" / name / "requirements.txt").read_text(encoding="utf-8")
    found = {each["name"]: each["version"] for each in LOCKED.finditer(text)}
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= len(found) > 0
    return found


def test_the_image_with_cuda_is_the_usual_one_but_for_cuda() -> None:
    usual, larger = _image("tensorflow"), _image("tensorflow-gpu")
    assert larger.pop("tensorflow") == usual.pop("tensorflow-cpu")
    cuda = {name for name in larger if name.startswith("nvidia-")}
    assert {name: version for name, version in larger.items() if name not in cuda} == usual
    assert set(PARTS.values()) <= cuda


def test_the_image_with_cuda_works_on_the_driver_that_hosts_get() -> None:
    locked = _image("tensorflow-gpu")
    entries = read_yaml(ROOT / "bundle.lock.yml")["artefacts"]
    image, wheels = entries["image_tensorflow_gpu"], entries["tensorflow_gpu_wheels"]
    cuda, cudnn, nccl = (locked[PARTS[name]] for name in ("cuda", "cudnn", "nccl"))
    assert image["arguments"]["CUDA"] == ".".join(cuda.split(".")[:2])
    assert image["version"] == wheels["version"] == locked["tensorflow"]
    row = compat.table_row(image["version"])
    assert (image["arguments"]["CUDA"], cudnn, nccl) == (row["cuda"], row["cudnn"], row["nccl"])
    branch = str(read_yaml(ROOT / "roles/nvidia_driver/defaults/main.yml")["nvidia_driver_branch"])
    versions = {"tensorflow": image["version"], "python": wheels["python"], "cuda": image["arguments"]["CUDA"]}
    compat.check(compat.Combination("single", "custom", "none", **versions, cudnn=cudnn, nccl=nccl, driver=branch))


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("lock", INSTALLED_ON_EACH, ids=lambda path: path.stem)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_package_has_a_wheel_with_a_locked_hash(python: str, lock: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wheels = ["--only-binary=:all:", f"--python-version={python}", f"--target={tmp_path}"]
    result = subprocess.run(
        [*pip, *wheels, "--require-hashes", f"--requirement={lock}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
