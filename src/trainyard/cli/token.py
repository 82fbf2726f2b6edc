"""`trainyard token`: a login for the console."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ..kube.connection import connect
from ..site.inventory import places
from . import terminal
from .logins import make


@click.command("token")
@click.argument("name")
@click.option("--hours", type=float, default=None, help="Validity in hours; by default the site's maximum.")
@click.pass_obj
def command(inventory: tuple[str, ...], name: str, hours: float | None) -> None:
    """Create a login token of NAME, one of the site's dashboard_users, and write it to a file.

    Only its owner may read the file. playbooks/console_revoke.yml revokes the login.
    """
    where = places(inventory)
    login = make(connect(where.kubeconfig), name, hours, Path(where.token_dir), datetime.now(UTC))
    terminal.echo(str(login))
