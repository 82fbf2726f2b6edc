"""What the program `trainyard` needs of a site: where its cluster is, and where its logs are kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.trainyard.core.errors import TrainyardError

DEFAULTS = Path(__file__).resolve().parents[1] / "roles" / "workloads" / "defaults" / "main.yml"
NAMES = ("workloads_kubeconfig", "workloads_log_dir", "workloads_token_dir")


@dataclass(frozen=True)
class Places:
    """Paths on the controller.

    :param kubeconfig: credentials of the cluster.
    :param log_dir: folder with the kept logs of all runs.
    :param token_dir: folder for tokens, which its owner alone may read.
    """

    kubeconfig: str
    log_dir: str
    token_dir: str


def places(inventory: Sequence[str]) -> Places:
    """The paths that an inventory, or a role's default, says for the controller.

    :param inventory: folders or files, as those after `-i`.
    :raises TrainyardError: there is no such inventory, it cannot be read, or does not say them.
    """
    from ansible import constants
    from ansible.cli import CLI
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    from ansible.template import Templar
    from ansible.vars.hostvars import HostVars
    from ansible.vars.manager import VariableManager

    for each in inventory:
        if not os.path.exists(each):
            raise TrainyardError(f"There is no inventory {each}.", remedy="Name one with -i or in TRAINYARD_INVENTORY.")
    try:
        init_plugin_loader()
        loader = DataLoader()
        secrets = CLI.setup_vault_secrets(loader, vault_ids=constants.DEFAULT_VAULT_IDENTITY_LIST, auto_prompt=False)
        loader.set_vault_secrets(secrets)
        hosts = InventoryManager(loader=loader, sources=list(inventory))
        localhost = hosts.localhost or hosts.get_host("localhost")
        manager = VariableManager(loader=loader, inventory=hosts)
        variables: dict[str, Any] = loader.load_from_file(str(DEFAULTS), trusted_as_template=True)
        variables |= manager.get_vars(host=localhost)
        variables["hostvars"] = HostVars(hosts, manager, loader)
        templar = Templar(loader=loader, variables=variables)
        return Places(*(os.path.expanduser(str(templar.template(variables[name]))) for name in NAMES))
    except AnsibleError as error:
        raise TrainyardError(
            f"The inventory {', '.join(inventory)} cannot be read: {str(error).rstrip('.')}."
        ) from error
