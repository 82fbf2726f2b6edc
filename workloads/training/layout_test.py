"""Tests of the files of a workload, or of the code shared by several: few and short enough to read in one sitting."""

from pathlib import Path

import pytest

WORKLOADS = sorted(path.parent for path in Path(__file__).parent.glob("*/__init__.py"))
FILES = {"README.md", "__init__.py", "config.py", "data.py", "main.py", "model.py", "train_test.py"}
LINES = 250


@pytest.mark.parametrize("folder", WORKLOADS, ids=lambda folder: folder.name)
def test_a_workload_is_these_files_and_short(folder):
    files = [path for path in folder.iterdir() if path.is_file()]
    assert {path.name for path in files} <= FILES
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= LINES
