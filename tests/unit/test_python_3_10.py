"""Code for hosts with Python 3.10, which Ubuntu 22.04 has. Skipped on a machine without it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.unit.interpreters import pure_packages, python_3_10

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "host", "net", "gpu", "kubeadm")
"""Packages that are sent to hosts (tests/contract/test_borders.py)."""
LEFT_OUT = (
    "gpu/test_proof_compute.py",
    "host/test_apt_entries.py",
    "host/test_apt_sources.py",
    "kubeadm/test_api.py",
    "kubeadm/test_etcd.py",
    "kubeadm/test_findings.py",
    "net/test_certificate.py",
    "net/test_https.py",
)
"""Tests with packages that are compiled for the environment's own Python: cryptography, and the fast parser of YAML."""
LIMIT = 400.0
PYTHON = python_3_10()

pytestmark = pytest.mark.skipif(not PYTHON, reason="no Python 3.10 starts on this machine")


def start(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run Python 3.10 in the checkout; `path` is its PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [PYTHON, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def test_all_modules_for_hosts_are_imported() -> None:
    files = [path for each in PACKAGES for path in (ROOT / "src/trainyard" / each).rglob("*.py")]
    names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in files]
    names = sorted(name for name in names if not name.endswith(("__init__", "__main__")))
    code = "import importlib, sys\nassert sys.version_info[:2] == (3, 10)\n"
    code += f"for name in {names}: importlib.import_module(name)"
    done = start("-c", code, path=str(ROOT / "src"))
    assert len(names) > 50 and done.returncode == 0, done.stderr


@pytest.mark.slow
def test_their_unit_tests_pass(tmp_path: Path) -> None:
    folders = [ROOT, ROOT / "src", ROOT / "tests/contract", ROOT / "library"]
    settings = tmp_path / "pytest.ini"
    settings.write_text(
        "[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\nmarkers =\n  slow\n  proof\n  lab\n"
        f"pythonpath = {shlex.join(map(str, folders))}\n",
        encoding="utf-8",
    )
    library = pure_packages(tmp_path / "library")
    chosen = [f"tests/unit/{each}" for each in PACKAGES] + [f"--ignore=tests/unit/{each}" for each in LEFT_OUT]
    pytest_at = ["-m", "pytest", "-q", "-c", str(settings), f"--rootdir={ROOT}", "-m", "not slow and not proof"]
    done = start(*pytest_at, *chosen, path=f"{library}:{ROOT / 'src'}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
