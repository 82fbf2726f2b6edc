"""`trainyard console`: the address of the console, or a port-forward to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click

from ..core.errors import TrainyardError
from ..core.proxy import without
from ..kube.connection import connect
from ..site.inventory import Places, places
from . import terminal
from .logins import NAMESPACE, reach


@click.command("console")
@click.pass_obj
def command(inventory: tuple[str, ...]) -> None:
    """Print the console's address. If it has no node port, forward its ports until Ctrl-C.

    The local ports equal those in the links of the console's pages, so links to TensorBoard work.
    """
    where = places(inventory)
    found = reach(connect(where.kubeconfig))
    if found.address:
        terminal.echo(found.address)
        return
    sys.exit(forward(where, found.ports))


def forward(where: Places, ports: tuple[int, int]) -> int:
    """Forward the console's ports from this machine until the user ends it, and return the exit status.

    :param where: paths of the site; kubectl is in `bin` of its folder, or on the PATH.
    :param ports: of the pages, and of TensorBoard.
    :raises TrainyardError: there is no kubectl.
    """
    # The site's own first: its hash and version are those of the lock.
    program = (where.site_dir and shutil.which(f"{where.site_dir}/bin/kubectl")) or shutil.which("kubectl")
    if not program:
        raise TrainyardError(
            "There is no kubectl on this machine, so ports cannot be forwarded.",
            remedy="Run site.yml, which copies it to site_dir/bin, or set dashboard_exposure: node_port.",
        )
    arguments = [f"{port}:{port}" for port in ports]
    forwarding = [
        program,
        f"--kubeconfig={where.kubeconfig}",
        f"--namespace={NAMESPACE}",
        "port-forward",
        "service/console",
    ]
    environment = without(os.environ)
    with subprocess.Popen([*forwarding, *arguments], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            # The first line of kubectl reports the open ports. Errors go to standard error.
            if process.stdout.readline():
                terminal.echo(f"https://localhost:{ports[0]}/  (ends with Ctrl-C)")
            for _ in process.stdout:
                pass
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return 0
