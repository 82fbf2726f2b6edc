"""`trainyard gpus`: which GPUs there are, how they are, and who holds them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click
from ansible.module_utils.trainyard.kube.looking import connect_to_look
from ansible.module_utils.trainyard.training.gpu_nodes import Row, gpus
from rich.console import Console
from rich.table import Table

from ..inventory import places
from .tables import console


@click.command("gpus")
@click.option("--json", "as_json", is_flag=True, help="A list of objects instead of a table; memory in MiB.")
@click.pass_obj
def command(inventory: tuple[str, ...], as_json: bool) -> None:
    """Show the GPUs of each node. Ends with 1 where one is unhealthy, or is not offered to new pods."""
    found = gpus(connect_to_look(places(inventory).kubeconfig))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        show(found, console())
    if any(each.healthy < each.offered or each.state in ("skew", "no plugin") for each in found):
        raise click.exceptions.Exit(1)


def show(found: Sequence[Row], console: Console) -> None:
    """Print the table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("node", "GPU", "memory", "driver", "CUDA", "healthy", "free", "sharing", "state", "held by"):
        table.add_column(
            name,
            no_wrap=name == "node",
            overflow="fold",
            justify="right" if name in ("memory", "free") else "left",
        )
    for each in found:
        well = each.healthy == each.offered
        table.add_row(
            each.node,
            each.product or "-",
            f"{each.memory / 1024:.0f} GiB" if each.memory else "-",
            each.driver or "-",
            each.cuda or "-",
            f"[{'green' if well else 'red'}]{each.healthy} of {each.offered}[/]",
            str(each.free),
            each.sharing,
            each.state if each.state == "ready" else f"[yellow]{each.state}[/]",
            ", ".join(map(str, each.holders)) or "-",
        )
    console.print(table if found else "No GPUs.")
