"""Commands, the options that all have, and what an error looks like."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click
from ansible.module_utils.trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("completion", "console", "gpus", "logs", "reprovision", "token", "trainings", "verify", "why")


class Program(click.Group):
    """Imports a command's module when it is called: completion must not wait for Ansible."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"trainyard.cli.{name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TrainyardError as error:
            # As a module of ours says it: what is wrong, then what to do.
            raise click.ClickException(" ".join(filter(None, (error.message, error.remedy)))) from error
        except BrokenPipeError:
            # The reader, `head` for one, has what it wanted. Python would complain once more when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-i", "--inventory", envvar="TRAINYARD_INVENTORY", default=[str(ROOT / "inventories" / "lab")], multiple=True,
    help="Inventory of the site; else TRAINYARD_INVENTORY, else inventories/lab.",
    type=click.Path(),
)  # fmt: skip
@click.pass_context
def main(ctx: click.Context, inventory: tuple[str, ...]) -> None:
    """Look at a site. Changing is what the playbooks are for.

    Two things here change something: `token` makes a login, and `reprovision run --mode converge` changes a site,
    through the very playbooks.

    Ends with 0, with 1 if something is wrong or not there, and with 2 if it cannot be told or was called wrongly.
    """
    ctx.obj = inventory
