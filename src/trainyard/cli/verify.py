"""`trainyard verify`: run verify.yml and exit with the status of the verdict: 0 pass, 1 fail, 2 unknown.

`ansible-playbook` has other statuses. So this program starts it and shows its output on standard error. Then it
prints the JSON document on standard output, and exits with the verdict of this run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..project import ROOT
from ..verify.verdict import SCHEMA
from . import terminal

EXIT = {"pass": 0, "fail": 1, "unknown": 2}


def read_document(path: str) -> dict[str, Any]:
    """Return the document of the playbook; one with the verdict `unknown` if it wrote none."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["verdict"] in EXIT:
            return dict(document)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {
        "schema": SCHEMA,
        "verdict": "unknown",
        "checks": [],
        "trainings": [],
        "warnings": ["verify.yml ended before the verdict"],
    }


def judge(arguments: Sequence[str], playbook: Sequence[str] = ()) -> int:
    """Run the playbook and return the exit status.

    :param arguments: further arguments of `ansible-playbook`.
    :param playbook: the command to run instead of the environment's `ansible-playbook` (tests).
    """
    command = list(playbook) or [str(Path(sys.executable).with_name("ansible-playbook")), str(ROOT / "verify.yml")]
    with tempfile.TemporaryDirectory(prefix="trainyard-verify-") as folder:
        document = os.path.join(folder, "document.json")
        extra = ["-e", json.dumps({"verify_document_path": document})]
        try:
            # All waits in the playbook have limits. A limit here would only cut off its message.
            subprocess.run([*command, *extra, *arguments], stdout=sys.stderr, check=False)
        except OSError as error:
            terminal.echo(f"{command[0]} cannot be started: {error.strerror}", err=True)
        found = read_document(document)
    terminal.show_json(found)
    return EXIT[found["verdict"]]


@click.command("verify", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(inventory: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    """Judge the site and print the verdict as JSON; everything else goes to standard error.

    ARGUMENTS go to ansible-playbook, such as --ask-become-pass. Exits with 0 pass, 1 fail, 2 unknown.
    """
    sys.exit(judge([*(f"--inventory={each}" for each in inventory), *arguments]))
