"""Read a site's inventory for the program `trainyard`: values of variables, hosts, and secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from ..project import ROOT

ROLES = ROOT / "roles"
NAMES = ("workloads_kubeconfig", "workloads_log_dir", "workloads_token_dir", "site_dir")

DIGITS = 6
"""Number of digits from which a number in an encrypted file is a secret, not a port or count."""


@dataclass(frozen=True)
class Places:
    """Paths on the controller.

    :param kubeconfig: credentials of the cluster.
    :param log_dir: folder with the saved logs of all runs.
    :param token_dir: folder for tokens, readable only by its owner.
    :param site_dir: folder of the site's files; empty if the inventory sets none.
    """

    kubeconfig: str
    log_dir: str
    token_dir: str
    site_dir: str = ""


def places(inventory: Sequence[str]) -> Places:
    """Return the paths on the controller from an inventory, or from the role's defaults.

    :param inventory: folders or files, as after `-i`.
    :raises TrainyardError: the inventory is missing, cannot be read, or lacks a path.
    """
    values = Inventory(inventory).values("workloads", NAMES, site_dir="")
    return Places(*(os.path.expanduser(str(values[name])) for name in NAMES))


class Inventory:
    """An inventory as Ansible reads it, without a connection to a host.

    :param sources: folders or files, as after `-i`.
    :param locked: whether to read it also if the vault's password is unavailable. Then encrypted files count as empty,
        and reading a single encrypted value fails.
    :raises TrainyardError: the inventory is missing, or cannot be read.
    """

    def __init__(self, sources: Sequence[str], *, locked: bool = False) -> None:
        from ansible import constants
        from ansible.cli import CLI
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.parsing.vault import VaultSecretsContext, is_encrypted_file
        from ansible.plugins.loader import init_plugin_loader
        from ansible.vars.manager import VariableManager

        encrypted: list[Any] = []
        secrets: list[Any] = []

        class Loader(DataLoader):
            """Remembers the content of encrypted files."""

            def load_from_file(self, file_name: str, *args: Any, **options: Any) -> Any:
                if locked and not secrets and self._closed(file_name):
                    return {}
                found = super().load_from_file(file_name, *args, **options)
                if self._closed(file_name):
                    encrypted.append(found)
                return found

            def _closed(self, file_name: str) -> bool:
                try:
                    with open(self.path_dwim(file_name), "rb") as stream:
                        return bool(is_encrypted_file(stream))
                except OSError:
                    # Reading the file reports the error.
                    return False

        for each in sources:
            if not os.path.exists(each):
                advice = "Name one with -i or in TRAINYARD_INVENTORY."
                raise TrainyardError(f"There is no inventory {each}.", remedy=advice)
        self._sources, self._encrypted = list(sources), encrypted
        try:
            init_plugin_loader()
            self._loader = Loader()
            try:
                secrets += CLI.setup_vault_secrets(
                    self._loader,
                    vault_ids=constants.DEFAULT_VAULT_IDENTITY_LIST,
                    auto_prompt=False,
                    # A process has only one context.
                    initialize_context=VaultSecretsContext.current(optional=True) is None,
                )
            except AnsibleError:
                if not locked:
                    raise
            self._loader.set_vault_secrets(secrets)
            self._manager = InventoryManager(loader=self._loader, sources=list(sources))
            self._variables = VariableManager(loader=self._loader, inventory=self._manager)
        except AnsibleError as error:
            raise self._unreadable(error) from error

    def values(self, role: str, names: Iterable[str], host: str = "", **fallback: Any) -> dict[str, Any]:
        """Return variables of a role as a play on a host sees them.

        :param host: of the inventory; empty for the controller.
        :param fallback: values of variables that neither the inventory nor the role sets.
        :raises TrainyardError: a variable has no value.
        """
        from ansible.errors import AnsibleError
        from ansible.template import Templar
        from ansible.vars.hostvars import HostVars

        try:
            place = self._manager.get_host(host or "localhost") or self._manager.localhost
            defaults = ROLES / role / "defaults" / "main.yml"
            variables: dict[str, Any] = self._loader.load_from_file(str(defaults), trusted_as_template=True)
            variables = fallback | variables | self._variables.get_vars(host=place)
            variables["hostvars"] = HostVars(self._manager, self._variables, self._loader)
            templar = Templar(loader=self._loader, variables=variables)
            return {name: templar.template(variables[name]) for name in names}
        except AnsibleError as error:
            raise self._unreadable(error) from error

    def hosts(self, *groups: str) -> list[str]:
        """Return the names of the hosts in any of the groups, in the inventory's order. A missing group is empty."""
        found = self._manager.get_groups_dict()
        return list(dict.fromkeys(name for group in groups for name in found.get(group, [])))

    def secrets(self) -> set[str]:
        """Return all encrypted values of the inventory, single ones and those in encrypted files.

        :raises TrainyardError: a value cannot be decrypted.
        """
        from ansible.errors import AnsibleError
        from ansible.parsing.vault import VaultHelper

        try:
            hosts = [*self._manager.get_hosts("all"), *filter(None, [self._manager.localhost])]
            known = [self._variables.get_vars(host=host) for host in hosts]
            found = {
                str(value) for value in _leaves(known) if VaultHelper.get_ciphertext(value, with_tags=False) is not None
            }
        except AnsibleError as error:
            raise self._unreadable(error) from error
        for value in _leaves(self._encrypted):
            if isinstance(value, str) or (isinstance(value, int) and value >= 10 ** (DIGITS - 1)):
                found.add(str(value))
        # Names of hosts are not secret, and reports are useless without them.
        return found - {host.name for host in hosts}

    def _unreadable(self, error: Exception) -> TrainyardError:
        advice = "Set ANSIBLE_VAULT_PASSWORD_FILE to a file with the vault's password."
        return TrainyardError(
            f"The inventory {', '.join(self._sources)} cannot be read: {str(error).rstrip('.')}.",
            remedy=advice if "vault" in str(error).lower() else "",
        )


def _leaves(value: Any) -> Iterator[Any]:
    """Yield all values in plain data, without the names of fields."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, (list, tuple, set)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
