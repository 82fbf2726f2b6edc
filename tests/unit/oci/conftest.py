"""A folder of code, as a user has one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def code(tmp_path) -> Path:
    folder = tmp_path / "mine"
    for name, text in (
        ("worker.py", "print('worker')\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("mine/__init__.py", ""),
        ("mine/train.py", "STEPS = 3\n"),
        ("mine/tool/__main__.py", ""),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.sh").chmod(0o755)
    return folder
