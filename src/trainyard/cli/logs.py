"""`trainyard logs`: what a process of a run writes."""

from __future__ import annotations

import click

from ..kube.kubeconfig import connect
from ..kube.pod_log import readable
from ..site.inventory import places
from ..trainings import run_logs
from . import terminal


@click.command("logs")
@click.argument("run")
@click.option(
    "--role", default="", help="Process, such as worker-1; without it the chief, or whichever decides the run."
)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended, also when a pod is replaced.")
@click.option("--raw", is_flag=True, help="Print every byte as it is, with colours and progress bars.")
@click.pass_obj
def command(inventory: tuple[str, ...], run: str, role: str, follow: bool, raw: bool) -> None:
    """Print the log of RUN: live while its pod is there, else as it was kept on this machine.

    Of a progress bar the last state is printed, and no command to the terminal.
    """
    where = places(inventory)
    api = connect(where.kubeconfig)
    place = run_logs.find(api, run, role, where.log_dir)
    lines = run_logs.follow(api, place, _say) if follow else run_logs.read(api, place, where.log_dir)
    for line in lines:
        if raw:
            # The bytes are a program's own: they may do anything to a terminal.
            terminal.raw(line.text, newline=line.ended)
        else:
            terminal.line(readable(line.text, line.cut))


def _say(text: str) -> None:
    terminal.echo(f"trainyard: {text}", err=True)
