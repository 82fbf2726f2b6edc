"""`trainyard trainings`: all runs and their progress."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime

import click
from rich.console import Console

from ..kube.connection import connect_to_look
from ..site.inventory import places
from ..trainings.log_events import idle_gpus
from ..trainings.runs import Row, runs
from ..why.answer import about
from . import terminal

SCHEMA = 1
COLOURS = {"passed": "green", "no_bound": "green", "running": "cyan", "failed": "red", "waiting": "yellow"}


@click.command("trainings")
@click.option("--json", "as_json", is_flag=True, help="One object with a list instead of a table; times in seconds.")
@click.pass_obj
def command(inventory: tuple[str, ...], as_json: bool) -> None:
    """Show all runs: running ones first, then the newest."""
    found = runs(connect_to_look(places(inventory).kubeconfig), datetime.now(UTC))
    if as_json:
        terminal.show_json({"schema": SCHEMA, "trainings": [asdict(each) for each in found]})
    else:
        show(found, terminal.Terminal())


def show(found: list[Row], console: Console) -> None:
    """Print the table. Below it, print why runs wait, and which runs do not use their GPUs."""
    spaces = len({each.namespace for each in found}) > 1
    names = ("run", *(["namespace"] if spaces else []), "workload", "state")
    numbers = ("step", "accuracy", "age", "pods", "GPUs")
    rows = terminal.Rows((*names, *numbers), right=numbers, whole=("run",))
    for each in found:
        rows.add(
            each.run,
            *([each.namespace] if spaces else []),
            each.workload or "-",
            (each.state, COLOURS.get(each.state, "")),
            _steps(each),
            "-" if each.accuracy is None else f"{each.accuracy:.4f}",
            _age(each.age),
            f"{each.pods}/{each.wanted}" if each.wanted else "-",
            str(each.gpus or "-"),
        )
    rows.show(console, "No runs.")
    for each in found:
        if each.why:
            terminal.show_line(console, f"{each.run}: {each.why}")
        if each.held_by:
            terminal.show_line(console, f"{each.run}: {_holders(each)}")
        if idle := idle_gpus(asdict(each)):
            terminal.show_line(console, f"{each.run}: computes on the CPU, {idle}")


def _holders(each: Row) -> str:
    """Return a line such as `nvidia.com/gpu is held by cnn (about 7 min left), speech`."""
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
    """Return an age in its two largest units, like kubectl: `45s`, `12m`, `3h5m`, `2d4h`."""
    if seconds is None:
        return "-"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 1:
        return f"{math.floor(seconds)}s"
    if hours < 1:
        return f"{minutes}m"
    return f"{hours}h{minutes % 60}m" if days < 1 else f"{days}d{hours % 24}h"
