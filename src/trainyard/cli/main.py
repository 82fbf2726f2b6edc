"""The list of commands, their common options, the exit codes, and the form of errors."""

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

COMMANDS = (
    "completion", "console", "gpus", "kubeconfig", "logs", "reprovision", "token", "trainings", "verify", "why",
)  # fmt: skip
EXIT_CANNOT_TELL = 2
"""Also for a wrong call, as in click."""
EXIT_INTERRUPTED = 130
"""128 plus the number of SIGINT, as in shells."""


class Failure(click.ClickException):
    """An error in one line. Its exit status means that the state of the site is unknown."""

    exit_code = EXIT_CANNOT_TELL

    def __init__(self, *parts: object) -> None:
        super().__init__(clean(" ".join(filter(None, map(str, parts)))))


class Program(click.Group):
    """Imports a command's module on its call, so that completion does not wait for Ansible."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"trainyard.cli.{name}").command
        return command

    def _flushed(self, ctx: click.Context) -> Any:
        """Return the command's result. A reader that ended before the last line does not change the exit status."""
        try:
            return super().invoke(ctx)
        finally:
            # At its own end Python would exit with 120. Without a standard output there is nothing to flush.
            with contextlib.suppress(AttributeError):
                try:
                    sys.stdout.flush()
                except BrokenPipeError:
                    drop_output()

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and always exit with a status of the table."""
        try:
            return self._flushed(ctx)
        except BrokenPipeError:
            # The reader of a followed log has ended.
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
            raise Failure(f"{type(error).__name__}: {error}.", "Set --debug to see the traceback.") from error


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-i", "--inventory", envvar="TRAINYARD_INVENTORY", default=[str(ROOT / "inventories" / "lab")], multiple=True,
    help="Inventory of the site; else TRAINYARD_INVENTORY, else inventories/lab.",
    type=click.Path(),
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def main(ctx: click.Context, inventory: tuple[str, ...], debug: bool) -> None:
    """Show the state of a site. The playbooks change it.

    Three commands change something: `token` and `kubeconfig` create a login, and `reprovision run --mode converge`
    changes a site, with the same playbooks.

    Exits with 0 if nothing is wrong, 1 if something in the site is wrong, 2 if that is unknown or the call is wrong,
    and 130 after Ctrl-C. `reprovision run` also has 3, 4 and 5.
    """
    ctx.obj = inventory
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks must not fail the command.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
