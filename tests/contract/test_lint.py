"""The linters, without exceptions beyond the ones that the code itself gives a reason for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

BIN = Path(sys.executable).parent

LINTERS = {
    "ruff-check": ["ruff", "check", "--no-cache", "."],
    "ruff-format": ["ruff", "format", "--check", "--no-cache", "."],
    "mypy": ["mypy"],
    "yamllint": ["yamllint", "--strict", "."],
    "ansible-lint": ["ansible-lint", "--strict"],
}
"""Programs of the test environment, by the name of the check."""


@pytest.mark.parametrize("name", LINTERS)
def test_linter_finds_nothing(name: str) -> None:
    program, *arguments = LINTERS[name]
    result = subprocess.run(
        [str(BIN / program), *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
