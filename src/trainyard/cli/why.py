"""`trainyard why`: why a run waits, is silent or failed."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from ..core.errors import TrainyardError
from ..kube.connection import connect_to_look
from ..kube.reads import read
from ..site.inventory import places
from ..why.answer import text
from ..why.judge import explain
from ..why.snapshot import Snapshot, load, snapshot
from . import terminal


@click.command("why")
@click.argument("run")
@click.option(
    "-n", "--namespace", default="", help="Of the run; needed only if several namespaces have a run of this name."
)
@click.option("--json", "as_json", is_flag=True, help="One object instead of text.")
@click.option("--snapshot", "kept", default="", help="Also write the data that was read to FILE.", metavar="FILE")
@click.option("--from", "given", default="", help="Judge a FILE that --snapshot wrote.", metavar="FILE")
@click.pass_obj
def command(inventory: tuple[str, ...], run: str, namespace: str, as_json: bool, kept: str, given: str) -> None:
    """Explain why RUN waits, is silent or failed: the cause, the evidence, and the remedy.

    Exits with 0 if nothing is wrong, 1 if a cause was found, 2 if it is unknown.
    """
    seen = _kept(given) if given else _look(inventory, run, namespace)
    if kept:
        _keep(seen, kept)
    answer = explain(seen)
    if as_json:
        terminal.show_json(answer.as_json())
    else:
        terminal.echo(text(answer))
    sys.exit(answer.status)


def _look(inventory: tuple[str, ...], run: str, namespace: str) -> Snapshot:
    return read(connect_to_look(places(inventory).kubeconfig), snapshot(run, namespace, datetime.now(UTC)))


def _kept(path: str) -> Snapshot:
    try:
        return load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainyardError(f"{path} cannot be read: {error.strerror}.") from error


def _keep(seen: Snapshot, path: str) -> None:
    try:
        Path(path).write_text(json.dumps(seen.as_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise TrainyardError(f"{path} cannot be written: {error.strerror}.", remedy="Name another file.") from error
