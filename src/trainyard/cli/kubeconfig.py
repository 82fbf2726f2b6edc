"""`trainyard kubeconfig`: a file for kubectl with the rights of one of the site's users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ..core.errors import TrainyardError
from ..core.untrusted import at, items
from ..kube.connection import connect
from ..site.inventory import places
from . import terminal
from .logins import make


@click.command("kubeconfig")
@click.argument("name")
@click.option("--hours", type=float, default=None, help="Validity in hours; by default the site's maximum.")
@click.pass_obj
def command(inventory: tuple[str, ...], name: str, hours: float | None) -> None:
    """Write a kubeconfig of NAME, one of the site's dashboard_users, who has the same rights as in the console.

    Only its owner may read the file. playbooks/console_revoke.yml revokes its login.
    """
    where = places(inventory)
    cluster = cluster_of(where.kubeconfig)
    login = make(
        connect(where.kubeconfig), name, hours, Path(where.token_dir), datetime.now(UTC),
        kind="kubeconfig", render=lambda token: text(cluster, name, token),
    )  # fmt: skip
    terminal.echo(str(login))


def cluster_of(kubeconfig: str) -> dict[str, str]:
    """Return address and certificate authority of the cluster from the admin kubeconfig, without its credentials.

    :raises TrainyardError: the file cannot be read, or has no embedded authority.
    """
    import yaml

    try:
        known = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        known = None
    first = next(iter(items(at(known, "clusters"))), None)
    found = {name: at(first, "cluster", name) for name in ("server", "certificate-authority-data")}
    if not all(isinstance(each, str) and each for each in found.values()):
        raise TrainyardError(
            f"The kubeconfig {kubeconfig} cannot be read, or lacks the server or its certificate authority.",
            remedy="Delete it and run site.yml, which fetches it again from the control plane.",
        )
    return {name: str(each) for name, each in found.items()}


def text(cluster: Mapping[str, Any], user: str, token: str) -> str:
    """Return a kubeconfig as JSON, which is valid YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "trainyard", "cluster": dict(cluster)}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "trainyard", "context": {"cluster": "trainyard", "user": user}}],
        "current-context": "trainyard",
    }
    return json.dumps(document, indent=2)
