"""Run the linters, without exceptions other than those that the code itself gives a reason for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from checkout import ROOT

BIN = Path(sys.executable).parent

WHOLE_TREE = "ansible-lint-all"
"""It includes `ansible-lint`, so that one process serves both where both are selected."""

LINTERS = {
    "ruff-check": ["ruff", "check", "--no-cache", "."],
    "ruff-format": ["ruff", "format", "--check", "--no-cache", "."],
    "mypy": ["mypy"],
    "yamllint": ["yamllint", "--strict", "."],
    "ansible-lint": ["ansible-lint", "--strict", "--exclude=molecule", "--exclude=tests"],
    WHOLE_TREE: ["ansible-lint", "--strict"],
}
"""Programs of the test environment, by the name of the check."""

# It starts Ansible for each playbook: almost three minutes of CPU time.
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name == WHOLE_TREE else []) for name in LINTERS]
TIMEOUT = 600
"""Seconds per linter, beside the lab's scenarios."""


@dataclass(frozen=True)
class Started:
    """A running linter and its output file."""

    process: subprocess.Popen[bytes]
    output: Path


def shadows(folder: Path) -> list[str]:
    """Return options with which mypy reads each module under the package's own name, which it can follow."""
    options = []
    for path in sorted((ROOT / "library").glob("*.py")):
        shadow = folder / path.name
        shadow.write_text(path.read_text(encoding="utf-8").replace("ansible.module_utils.trainyard", "trainyard"))
        options += ["--shadow-file", str(path.relative_to(ROOT)), str(shadow)]
    return options


@pytest.fixture(scope="session")
def linters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Started]]:
    """Start the requested linters at the first request, so that half of their time passes beside other tests."""
    folder, started = tmp_path_factory.mktemp("linters"), {}
    # A library of ansible-lint cannot read a configuration below a path with parentheses, such as `trainyard (1)`.
    (folder / "checkout").symlink_to(ROOT)
    environ = {**os.environ, "ANSIBLE_CONFIG": str(folder / "checkout/ansible.cfg")}
    tests = [item for item in request.session.items if item.name.startswith("test_linter_finds_nothing[")]
    names = [test.callspec.params["name"] for test in tests]
    process_of = {"ansible-lint": WHOLE_TREE} if WHOLE_TREE in names else {}
    try:
        for name in (name for name in names if name not in process_of):
            program, *arguments = [*LINTERS[name], *(shadows(folder) if name == "mypy" else [])]
            output = folder / name
            with output.open("wb") as file:
                process = subprocess.Popen(
                    [BIN / program, *arguments], cwd=ROOT, env=environ, stdout=file, stderr=subprocess.STDOUT
                )
            started[name] = Started(process, output)
        yield {name: started[process_of.get(name, name)] for name in names}
    finally:
        for linter in started.values():
            linter.process.kill()
            linter.process.wait()


@pytest.mark.parametrize("name", NAMES)
def test_linter_finds_nothing(name: str, linters: dict[str, Started]) -> None:
    result = linters[name].process.wait(TIMEOUT)
    assert result == 0, linters[name].output.read_text()
