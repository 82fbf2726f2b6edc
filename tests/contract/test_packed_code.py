"""Tests of the code image: it contains all that its programs import, and no test helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from trainyard.oci import code_folder


@pytest.fixture(scope="module")
def workloads(root: Path) -> Path:
    return root / "workloads"


@pytest.fixture(scope="module")
def packed(workloads: Path) -> dict[str, Path]:
    """Return the modules of the image by their names."""
    return named(workloads, (workloads / entry.name for entry in code_folder.read(workloads)))


def named(workloads: Path, files: Iterable[Path]) -> dict[str, Path]:
    found = {file.relative_to(workloads).with_suffix(""): file for file in files if file.suffix == ".py"}
    return {".".join(name.parts).removesuffix(".__init__"): file for name, file in found.items()}


def imported(file: Path) -> set[str]:
    """Return the names of imported modules, and of names imported from them, which may also be modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_what_is_packed_imports_nothing_that_is_left_out(workloads: Path, packed: dict[str, Path]) -> None:
    left_out = named(workloads, workloads.rglob("*.py")).keys() - packed.keys()
    assert "engine.config_test" in left_out
    assert {name: missing for name, file in packed.items() if (missing := imported(file) & left_out)} == {}
    assert [
        name for name, file in packed.items() if any(each.split(".")[0] == "tests" for each in imported(file))
    ] == []


def test_nothing_is_packed_that_no_program_needs(packed: dict[str, Path]) -> None:
    programs = {name for name, file in packed.items() if "__main__" in file.read_text(encoding="utf-8")}
    assert {"training.cnn_ps.main", "training.mnist_ps.main", "data_import.main"} <= programs
    needed: set[str] = set()
    todo = list(programs)
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            packages = {name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)}
            todo += (imported(packed[name]) | packages) & packed.keys()
    assert sorted(packed.keys() - needed) == []
