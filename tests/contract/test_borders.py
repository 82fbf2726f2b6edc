"""Which part of the code may know which other, and what Python each part has to run on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from checkout import ROOT

UTILS = ROOT / "module_utils" / "trainyard"

ALLOWED = {
    "core": set(),
    "host": {"core"},
    "net": {"core"},
    "gpu": {"core", "host"},
    "kubeadm": {"core", "host", "net"},
    "kube": {"core", "net"},
    "drift": {"core", "kube"},
    "training": {"core", "kube"},
    "why": {"core", "kube", "training"},
    "verify": {"core", "drift", "gpu", "kube", "net", "training", "why"},
    "oci": {"core"},
    "bundle": {"core", "oci"},
    "lab": {"core"},
    "aws": {"core"},
    "controller": {"core"},
}
"""Package -> the packages whose modules it may import, besides its own."""

ON_HOSTS = ("core", "host", "net", "gpu", "kubeadm", "oci", "bundle", "controller")
"""Packages whose code runs on hosts (the bundle's on a builder), of which the oldest (Ubuntu 22.04) has Python 3.10."""


def _imports(path: Path) -> set[str]:
    """Names of the trainyard packages, or of whole other distributions, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            parts = path.relative_to(UTILS).parts[:-1]
            base = [*parts[: len(parts) - node.level + 1], *(node.module or "").split(".")]
            found |= {"trainyard:" + base[0]} if base[0] else {f"trainyard:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_every_package_has_its_rule() -> None:
    assert {path.name for path in UTILS.iterdir() if path.is_dir() and path.name != "__pycache__"} == ALLOWED.keys()


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_knows_only_those_below_it(package: str) -> None:
    for path in (UTILS / package).rglob("*.py"):
        known = {name.removeprefix("trainyard:") for name in _imports(path) if name.startswith("trainyard:")}
        assert known <= {package, *ALLOWED[package]}, path


def test_nothing_that_is_sent_to_hosts_imports_what_stays_on_the_controller() -> None:
    for folder in (ROOT / "library", UTILS):
        for path in folder.rglob("*.py"):
            assert not {name for name in _imports(path) if name.split(".")[0] == "trainyard"}, path


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    """Ansible sends every package's file along, and with it whatever it imports."""
    for path in UTILS.rglob("__init__.py"):
        (only,) = ast.parse(path.read_text(encoding="utf-8")).body
        assert isinstance(only, ast.Expr), path


def test_programs_of_the_bundle_end_with_the_module() -> None:
    """The next run works in the same folders, so none may go on there after its module was killed."""
    for path in (UTILS / "bundle").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "program.py" or not re.search(r"core.*command|subprocess", text), path


@pytest.mark.parametrize("package", ON_HOSTS)
def test_code_for_hosts_is_read_by_their_python(package: str) -> None:
    for path in (UTILS / package).rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 10))
