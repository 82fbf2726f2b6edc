"""The program `trainyard verify`: the exit status is the verdict of this run and of no other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainyard.cli import verify

PLAYBOOK = """
import json, sys
print("TASK [Judge the site]")
extra = json.loads(sys.argv[sys.argv.index("-e") + 1])
text = sys.argv[-2]
if text:
    open(extra["verify_document_path"], "w").write(text)
sys.exit(int(sys.argv[-1]))
"""


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ('{"schema": 2, "verdict": "pass"}', 0, 0),
        ('{"schema": 2, "verdict": "fail"}', 2, 1),
        ('{"schema": 2, "verdict": "unknown"}', 2, 2),
        ("", 4, 2),
        ("", 0, 2),
        ('{"verdict": "perhaps"}', 0, 2),
        ('["pass"]', 0, 2),
        ("{", 2, 2),
    ],
)
def test_exit_status(tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, status: int, expected: int) -> None:
    playbook = tmp_path / "playbook.py"
    playbook.write_text(PLAYBOOK)
    assert verify.judge([text, str(status)], [sys.executable, str(playbook)]) == expected
    out, err = capfd.readouterr()
    assert json.loads(out)["verdict"] == {0: "pass", 1: "fail", 2: "unknown"}[expected]
    assert "TASK" in err


def test_playbook_that_cannot_be_started(capfd: pytest.CaptureFixture[str]) -> None:
    assert verify.judge([], ["/nonexistent/ansible-playbook"]) == 2
    assert "cannot be started" in capfd.readouterr().err
