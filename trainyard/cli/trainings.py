"""`trainyard trainings`: which runs there are, and how far each is."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime

import click
from ansible.module_utils.trainyard.kube.looking import connect_to_look
from ansible.module_utils.trainyard.training.logs import idle_gpus
from ansible.module_utils.trainyard.training.runs import Row, runs
from ansible.module_utils.trainyard.why.text import about
from rich.console import Console
from rich.table import Table

from ..inventory import places
from .tables import console

COLOURS = {"passed": "green", "no_bound": "green", "running": "cyan", "failed": "red", "waiting": "yellow"}


@click.command("trainings")
@click.option("--json", "as_json", is_flag=True, help="A list of objects instead of a table; times in seconds.")
@click.pass_obj
def command(inventory: tuple[str, ...], as_json: bool) -> None:
    """Show all runs: those that go on first, then the youngest."""
    found = runs(connect_to_look(places(inventory).kubeconfig), datetime.now(UTC))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        show(found, console())


def show(found: list[Row], console: Console) -> None:
    """Print the table, and below it what runs wait for, and which do not use the GPUs that they have."""
    spaces = len({each.namespace for each in found}) > 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", *(["namespace"] if spaces else []), "workload", "state"):
        table.add_column(name, no_wrap=name == "run", overflow="fold")
    for name in ("step", "accuracy", "age", "pods", "GPUs"):
        table.add_column(name, justify="right")
    for each in found:
        table.add_row(
            each.run,
            *([each.namespace] if spaces else []),
            each.workload or "-",
            f"[{COLOURS[each.state]}]{each.state}[/]" if each.state in COLOURS else each.state,
            _steps(each),
            "-" if each.accuracy is None else f"{each.accuracy:.4f}",
            _age(each.age),
            f"{each.pods}/{each.wanted}" if each.wanted else "-",
            str(each.gpus or "-"),
        )
    console.print(table if found else "No runs.")
    for each in found:
        if each.why:
            console.print(f"{each.run}: {each.why}", markup=False)
        if each.held_by:
            console.print(f"{each.run}: {_holders(each)}", markup=False)
        if idle := idle_gpus(asdict(each)):
            console.print(f"{each.run}: computes on the CPU, {idle}", markup=False)


def _holders(each: Row) -> str:
    """`nvidia.com/gpu is held by cnn (about 7 min left), speech`."""
    parts = []
    for held in each.held_by:
        left = "" if held.seconds_left is None else f" ({about(held.seconds_left)} left)"
        parts.append(f"{held.run or held.namespace}{left}")
    return f"{each.held_by[0].resource} is held by {', '.join(dict.fromkeys(parts))}"


def _steps(each: Row) -> str:
    if each.step is None:
        return "-"
    return f"{each.step} of {each.steps}" if each.steps else str(each.step)


def _age(seconds: float | None) -> str:
    """The two largest units, as kubectl shows an age: `45s`, `12m`, `3h5m`, `2d4h`."""
    if seconds is None:
        return "-"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 1:
        return f"{math.floor(seconds)}s"
    if hours < 1:
        return f"{minutes}m"
    return f"{hours}h{minutes % 60}m" if days < 1 else f"{days}d{hours % 24}h"
