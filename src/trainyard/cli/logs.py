"""`trainyard logs`: the log of a process of a run."""

from __future__ import annotations

import click

from ..kube.connection import connect
from ..kube.pod_log import readable
from ..site.inventory import places
from ..trainings import run_logs
from . import terminal


@click.command("logs")
@click.argument("run")
@click.option(
    "--role", default="", help="Process, such as worker-1; by default the chief, or the process that decides the run."
)
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the run has ended, also if a pod is replaced.")
@click.option("--raw", is_flag=True, help="Print all bytes unchanged, with colours and progress bars.")
@click.pass_obj
def command(inventory: tuple[str, ...], run: str, role: str, follow: bool, raw: bool) -> None:
    """Print the log of RUN: live while its pod exists, else the copy that was saved on this machine.

    Control sequences are removed, and a progress bar is reduced to its last state.
    """
    where = places(inventory)
    api = connect(where.kubeconfig)
    place = run_logs.find(api, run, role, where.log_dir)
    lines = run_logs.follow(api, place, _say) if follow else run_logs.read(api, place, where.log_dir)
    for line in lines:
        if raw:
            # Unfiltered output of a program may contain any control sequence.
            terminal.raw(line.text, newline=line.ended)
        else:
            terminal.line(readable(line.text, line.cut))


def _say(text: str) -> None:
    terminal.echo(f"trainyard: {text}", err=True)
