"""Commands, the options that all have, the table of exit codes, and the form of an error."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

import click

from ..core.errors import TrainyardError
from ..core.untrusted import clean
from ..project import ROOT
from .terminal import drop_output

COMMANDS = ("completion", "console", "gpus", "logs", "reprovision", "token", "trainings", "verify", "why")
EXIT_CANNOT_TELL = 2
"""Also for a wrong call, as click has it."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""


class Failure(click.ClickException):
    """An error in one line, with the status of one that can tell nothing about the site."""

    exit_code = EXIT_CANNOT_TELL

    def __init__(self, *parts: object) -> None:
        super().__init__(clean(" ".join(filter(None, map(str, parts)))))


class Program(click.Group):
    """Imports a command's module when it is called: completion must not wait for Ansible."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"trainyard.cli.{name}").command
        return command

    def _flushed(self, ctx: click.Context) -> Any:
        """The command's result or its own status, also where the reader has left before the last line."""
        try:
            return super().invoke(ctx)
        finally:
            # Here and not at the end of Python, which would end with 120. Without an output there is nothing to do.
            with contextlib.suppress(AttributeError):
                try:
                    sys.stdout.flush()
                except BrokenPipeError:
                    drop_output()

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and end by the table of exit codes whatever happens."""
        try:
            return self._flushed(ctx)
        except BrokenPipeError:
            # Lines without an end, of a log that is followed, and the reader has enough.
            drop_output()
            raise click.exceptions.Exit(0) from None
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except TrainyardError as error:
            if ctx.params.get("debug"):
                raise
            raise Failure(error.message, error.remedy) from error
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise Failure(f"{type(error).__name__}: {error}.", "Set --debug for the whole report.") from error


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-i", "--inventory", envvar="TRAINYARD_INVENTORY", default=[str(ROOT / "inventories" / "lab")], multiple=True,
    help="Inventory of the site; else TRAINYARD_INVENTORY, else inventories/lab.",
    type=click.Path(),
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show where an error comes from, line by line.")
@click.pass_context
def main(ctx: click.Context, inventory: tuple[str, ...], debug: bool) -> None:
    """Look at a site. Changing is what the playbooks are for.

    Two things here change something: `token` makes a login, and `reprovision run --mode converge` changes a site,
    through the very playbooks.

    Ends with 0 where nothing is wrong, 1 where something of the site is wrong, 2 where that is unknown or the call
    is wrong, and 130 after Ctrl-C. `reprovision run` also has 3, 4 and 5.
    """
    ctx.obj = inventory
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is no reason to fail.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
