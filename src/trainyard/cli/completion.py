"""`trainyard completion`: code for the shell's start file."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import terminal


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the code with which SHELL completes commands and options.

    For bash, add to ~/.bashrc:  eval "$(trainyard completion bash)"
    """
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    terminal.raw(found(root, {}, "trainyard", "_TRAINYARD_COMPLETE").source())
