"""`trainyard verify`: runs verify.yml and ends with the verdict's own status: 0 pass, 1 fail, 2 cannot tell.

`ansible-playbook` knows other statuses, so this program starts it, shows its output on standard error, prints the one
JSON document on standard output and ends with the verdict of exactly this run.
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
    """The document that the playbook wrote; one with the verdict `unknown` if it wrote none."""
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
        "warnings": ["verify.yml ended before it came to a verdict"],
    }


def judge(arguments: Sequence[str], playbook: Sequence[str] = ()) -> int:
    """Run the playbook and return the exit status.

    :param arguments: passed on to `ansible-playbook`.
    :param playbook: the command to run instead of the environment's own `ansible-playbook` (tests).
    """
    command = list(playbook) or [str(Path(sys.executable).with_name("ansible-playbook")), str(ROOT / "verify.yml")]
    with tempfile.TemporaryDirectory(prefix="trainyard-verify-") as folder:
        document = os.path.join(folder, "document.json")
        extra = ["-e", json.dumps({"verify_document_path": document})]
        try:
            # Every wait inside the playbook is bounded; a limit here would only cut off its message.
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

    ARGUMENTS go to ansible-playbook, such as --ask-become-pass. Ends with 0 pass, 1 fail, 2 cannot tell.
    """
    sys.exit(judge([*(f"--inventory={each}" for each in inventory), *arguments]))
