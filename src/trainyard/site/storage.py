"""Rules about the shared storage of the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Problem, Site, problem
from .trainings import trainings

OF_HOSTS = ("efs_mount_", "storage_timeout")
"""Prefixes of variables that may differ between hosts."""


def storage_is_one(site: Site) -> Iterator[Problem]:
    """Refuse a back end that only some hosts have, as the claims are for the whole cluster."""
    settings = [setting for setting in site.settings if setting.name == "storage_backend"]
    for setting in settings:
        remedy = "Set it once, for all hosts (group_vars/all)."
        without = [host for host in site.groups.get("cluster", ()) if host not in setting.hosts]
        if setting.value != settings[0].value:
            yield problem(setting, f'other hosts have "{settings[0].value}"', remedy)
        elif setting.value and without:
            yield problem(setting, f"the host {without[0]} of the cluster does not have it", remedy)


def known_to_the_controller(site: Site) -> Iterator[Problem]:
    """Refuse variables for the file system and the claims that only hosts have, as the controller creates these."""
    for setting in site.settings:
        made_of = setting.name.startswith(("storage_", "efs_")) and not setting.name.startswith(OF_HOSTS)
        if made_of and not setting.controller:
            fault = "the controller, which creates the file system and the claims, does not have it"
            yield problem(setting, fault, "Set it for all hosts (group_vars/all).")


def claims_where_trainings_are(site: Site) -> Iterator[Problem]:
    """Refuse a training in a namespace without the claim for its files."""
    if not any(setting.value for setting in site.values("storage_backend")):
        return
    claims = {str(setting.value) for setting in site.values("storage_namespace")} or {"trainings"}
    for training in trainings(site):
        namespace = str(training.description.get("namespace", "trainings"))
        if namespace not in claims:
            fault = f"the claims of the shared storage are in {', '.join(sorted(claims))}"
            yield training.refuse(
                "namespace", namespace, fault, "Set storage_namespace to the namespace of the training."
            )


STORAGE_RULES = (storage_is_one, known_to_the_controller, claims_where_trainings_are)
