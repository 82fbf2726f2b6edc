"""Rules about the shared storage of the nodes, its back end, and the file system of AWS.

The rules of the back end check requirements, conflicts and sizes. The rules of the file system refuse values that AWS
would refuse. Only AWS itself checks zones and VPCs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from ..aws.access_point import PATH_REMEDY, fault_of
from ..kube.placement import amount
from .role_facts import ROLES
from .site_model import Problem, Setting, Site, problem
from .training_rules import trainings

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


_EFS = re.compile(r"fs-[0-9a-f]+\.efs\.")
"""Prefix of the names of EFS's servers."""


def quantity(text: object) -> float | None:
    """Return a quantity of Kubernetes as a number; None for an invalid text."""
    try:
        found = amount(text)
    except ValueError:
        return None
    return found if found >= 0 and str(text) == str(text).strip() else None


def sizes(site: Site) -> Iterator[Problem]:
    """Refuse invalid sizes, volumes without a claim, and claims that are larger than their volumes."""
    claims = next((each.value for each in site.values("storage_claims") if isinstance(each.value, Mapping)), {})
    for name in ("storage_claims", "storage_volumes"):
        for setting in site.values(name):
            for key, size in setting.value.items() if isinstance(setting.value, Mapping) else ():
                if quantity(size) is None:
                    yield problem(setting, "not a quantity", "Use for example 750Gi.", key=f".{key}", value=size)
    for setting in site.values("storage_volumes"):
        for key, size in setting.value.items() if isinstance(setting.value, Mapping) else ():
            if key not in claims:
                remedy = f"The claims are {', '.join(claims)}."
                yield problem(setting, "there is no claim of this name", remedy, key=f".{key}", value=size)
                continue
            asked, there = quantity(claims[key]), quantity(size)
            if asked is not None and there is not None and asked > there:
                fault = f"its claim requests more, {claims[key]}"
                remedy = "Make the volume as large as its claim, or the claim smaller."
                yield problem(setting, fault, remedy, key=f".{key}", value=size)


@cache
def backends() -> dict[str, dict[str, Any]]:
    """Return the table of the role `storage`: name of a back end -> its row. The file documents the keys."""
    found = yaml.safe_load((ROLES / "storage/meta/backends.yml").read_text(encoding="utf-8"))
    return {str(name): dict(row) for name, row in found.items()}


def _chosen(site: Site) -> Iterator[tuple[Setting, dict[str, Any]]]:
    """Yield each known back end of the site, with its row."""
    for setting in site.values("storage_backend"):
        if row := backends().get(str(setting.value)):
            yield setting, row


def backend_has_what_it_needs(site: Site) -> Iterator[Problem]:
    """Refuse a back end without its variables, and deletion with a back end that cannot delete."""
    for setting, row in _chosen(site):
        for name in row["needs"]:
            if not any(each.value for each in site.values(name)):
                yield problem(setting, f"{name} is not set", "Set it; see roles/storage/README.md.")
            for path in site.values(name) if name.endswith("_path") else ():
                if path.value and not str(path.value).startswith("/"):
                    yield problem(path, "not absolute", "Write the server's path from its root.")
        for policy in site.values("storage_reclaim_policy"):
            if policy.value == "Delete" and not row["deletes"]:
                fault = f"storage_backend {setting.value} cannot delete a volume"
                yield problem(policy, fault, "Set it to Retain, and delete the files by hand.")


def a_file_system_is_there(site: Site) -> Iterator[Problem]:
    """Refuse a back end on EFS without a file system, and a new file system without all of its variables.

    The values may need facts, so this rule checks only whether the variables are set.
    """
    said = {setting.name: setting for setting in site.settings}
    for setting, row in _chosen(site):
        own = row["efs"]
        if not own:
            continue
        if "efs_name" in said and _is_said(site, own):
            fault = "efs_name is set, too, and would create an unused file system"
            yield problem(said[own], fault, f"Remove efs_name, or {own}.")
        elif "efs_name" in said:
            for name in ("efs_subnet_ids", "efs_clients"):
                if name not in said:
                    yield problem(said["efs_name"], f"{name} is not set", "Set it; see roles/efs/README.md.")
        elif not _is_said(site, own):
            remedy = f"or set {own} to an existing one."
            remedy = f"Set efs_name, efs_subnet_ids and efs_clients to create a file system, {remedy}"
            yield problem(setting, "efs_name is not set", remedy)


def _is_said(site: Site, name: str) -> bool:
    """Return whether a variable is set to a value, which may need facts."""
    return any(each.name == name and (not each.resolved or each.value) for each in site.settings)


def one_way_to_mount(site: Site) -> Iterator[Problem]:
    """Refuse mounts on hosts if a driver mounts the file system, and missing mounts if the back end is a folder."""
    mounts = {str(setting.value): row["mount"] for setting, row in _chosen(site)}
    mounted = [name for name, mount in mounts.items() if mount == "efs_mount"]
    for mode in site.values("efs_mount_mode"):
        if mode.value in ("none", "absent") and mounted:
            remedy = "Set it to efs_utils, or to nfs4 for NFS without TLS."
            yield problem(mode, f"storage_backend is {mounted[0]}", remedy)
        for backend, mount in mounts.items():
            if mode.value not in ("none", "absent") and mount == "kubelet":
                fault = f"storage_backend is {backend}, which mounts by itself for each pod"
                yield problem(mode, fault, "Set it to none, or storage_backend to efs_mount.")
        other = set(mounts.values()) - {"owner"}
        if mode.value in ("nfs4", "efs_utils") and not other and not _is_said(site, "efs_mount_server"):
            fault = "there is nothing to mount: efs_mount_server is not set, and storage_backend is not efs_mount"
            yield problem(mode, fault, "Set one of them.")
    for path in site.values("efs_mount_path"):
        if not str(path.value).startswith("/") or not str(path.value).strip("/"):
            yield problem(path, "not the path of a folder", "Use for example /srv/trainyard/shared.")
    if mounted:
        paths = {str(each.value) for each in site.values("storage_path")}
        for mount in site.values("efs_mount_path"):
            if paths and str(mount.value) not in paths:
                remedy = "Remove efs_mount_path, or set both to the same path."
                yield problem(mount, f"storage_path is {', '.join(sorted(paths))}", remedy)


def nfs_has_no_tls(site: Site) -> Iterator[Problem]:
    """Refuse plain NFS to a file system whose policy requires TLS."""
    if not _wants_tls(site):
        return
    remedy = (
        "Use efs_utils or efs_csi, or set efs_require_tls to false, which sends files over the network unencrypted."
    )
    for mode in site.values("efs_mount_mode"):
        if mode.value == "nfs4" and _is_efs(site, "efs_mount_server", empty=True):
            yield problem(mode, "NFS has no TLS, and efs_require_tls is true", remedy)
    for backend, row in _chosen(site):
        if row["server"] and _is_efs(site, row["server"], empty=False):
            yield problem(backend, "NFS has no TLS, and efs_require_tls is true", remedy)


def _wants_tls(site: Site) -> bool:
    policies: list[Setting] = [each for each in site.values("efs_policy") if each.value]
    if policies:
        return any("aws:SecureTransport" in json.dumps(each.value) for each in policies)
    return any(str(each.value).lower() == "true" for each in site.values("efs_require_tls"))


def _is_efs(site: Site, name: str, *, empty: bool) -> bool:
    """Return whether a server is one of EFS; `empty` is the result without a server."""
    servers = [str(each.value) for each in site.values(name) if each.value]
    return any(_EFS.match(each) for each in servers) if servers else empty


BACKEND_RULES = (sizes, backend_has_what_it_needs, a_file_system_is_there, one_way_to_mount, nfs_has_no_tls)


def provisioned_throughput(site: Site) -> Iterator[Problem]:
    """Refuse provisioned throughput without its mode, and the mode without an amount."""
    modes = [setting.value for setting in site.values("efs_throughput_mode")]
    amounts = list(site.values("efs_provisioned_mibps"))
    for setting in amounts:
        if modes and "provisioned" not in modes:
            remedy = "Set efs_throughput_mode to provisioned, or remove the amount."
            yield problem(setting, f"efs_throughput_mode is {modes[0]}", remedy)
    for setting in site.values("efs_throughput_mode"):
        if setting.value == "provisioned" and not amounts:
            yield problem(setting, "efs_provisioned_mibps is not set", "Set it to 1 MiB/s or more.")


def access_point_paths(site: Site) -> Iterator[Problem]:
    """Refuse paths that EFS does not accept, and two access points with the same name."""
    for setting in site.values("efs_access_points"):
        names: set[str] = set()
        for index, point in enumerate(setting.value if isinstance(setting.value, list) else ()):
            if not isinstance(point, Mapping):
                continue
            name, path = str(point.get("name", "")), str(point.get("path", "/"))
            if fault := fault_of(path):
                yield problem(setting, fault, PATH_REMEDY, key=f"[{index}].path", value=path)
            if name in names:
                yield problem(
                    setting,
                    "another access point has this name",
                    "Use each name once.",
                    key=f"[{index}].name",
                    value=name,
                )
            names.add(name)


def subnets_once(site: Site) -> Iterator[Problem]:
    """Refuse a subnet that is listed twice."""
    for setting in site.values("efs_subnet_ids"):
        subnets = [str(each) for each in setting.value] if isinstance(setting.value, list) else []
        for each in sorted({each for each in subnets if subnets.count(each) > 1}):
            yield problem(setting, "listed twice", "Name one subnet in each zone.", value=each)


EFS_RULES = (provisioned_throughput, access_point_paths, subnets_once)
