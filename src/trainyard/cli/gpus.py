"""`trainyard gpus`: the GPUs of all nodes, their health, and the runs that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click
from rich.console import Console

from ..kube.connection import connect_to_look
from ..site.inventory import places
from ..trainings.gpu_requests import Row, gpus
from . import terminal

SCHEMA = 1


@click.command("gpus")
@click.option("--json", "as_json", is_flag=True, help="One object with a list instead of a table; memory in MiB.")
@click.pass_obj
def command(inventory: tuple[str, ...], as_json: bool) -> None:
    """Show the GPUs of each node. Exits with 1 if one is unhealthy, or is not offered to new pods."""
    found = gpus(connect_to_look(places(inventory).kubeconfig))
    if as_json:
        terminal.show_json({"schema": SCHEMA, "nodes": [asdict(each) for each in found]})
    else:
        show(found, terminal.Terminal())
    if any(each.healthy < each.offered or each.state in ("skew", "no plugin") for each in found):
        raise click.exceptions.Exit(1)


def show(found: Sequence[Row], console: Console) -> None:
    """Print the table."""
    names = ("node", "GPU", "memory", "driver", "CUDA", "healthy", "free", "sharing", "state", "held by")
    rows = terminal.Rows(names, right=("memory", "free"), whole=("node",))
    for each in found:
        well = each.healthy == each.offered
        rows.add(
            each.node,
            each.product or "-",
            f"{each.memory / 1024:.0f} GiB" if each.memory else "-",
            each.driver or "-",
            each.cuda or "-",
            (f"{each.healthy} of {each.offered}", "green" if well else "red"),
            str(each.free),
            each.sharing,
            (each.state, "" if each.state == "ready" else "yellow"),
            ", ".join(map(str, each.holders)) or "-",
        )
    rows.show(console, "No GPUs.")
