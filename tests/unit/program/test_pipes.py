"""Commands whose reader leaves, and narrow terminals: no error, and the status of the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("width", ["20", "200"])
def test_a_narrow_terminal_and_a_closed_pipe(width: str) -> None:
    """A reader that has enough is no error, whichever library writes."""
    root = Path(__file__).resolve().parents[3]
    program = (
        "import sys\n"
        "import click; from trainyard.cli import terminal, main\n"
        "@click.command('many')\n"
        "def many():\n"
        "    rows = terminal.Rows(('a', 'b'))\n"
        "    for n in range(5000): rows.add(str(n), 'x' * 50)\n"
        "    rows.show(terminal.Terminal(), '')\n"
        "main.Program.get_command = lambda self, ctx, name: many\n"
        "main.main(['many'])\n"
    )
    shell = '"$0" -c "$1" | head -n 1; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", shell, sys.executable, program], cwd=root, capture_output=True, text=True, timeout=180,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": width, "LANG": "C"}, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0" and done.stderr == "", done.stderr


@pytest.mark.parametrize("status", [0, 1, 2])
@pytest.mark.parametrize("reader", ["| true", ">&-"])
def test_a_reader_that_leaves_changes_no_status(status: int, reader: str) -> None:
    root = Path(__file__).resolve().parents[3]
    program = (
        "import sys\n"
        "import click, time; from trainyard.cli import terminal, main\n"
        "@click.command('one')\n"
        "def one():\n"
        f"    terminal.show_json({{'schema': 1}}); time.sleep(0.2); sys.exit({status})\n"
        "main.Program.get_command = lambda self, ctx, name: one\n"
        "main.main(['one'])\n"
    )
    shell = f'"$0" -c "$1" {reader}; echo "${{PIPESTATUS[0]}}" >&2'
    done = subprocess.run(
        ["bash", "-c", shell, sys.executable, program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stderr.split() == [str(status)], done.stderr
