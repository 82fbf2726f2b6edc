"""The folder of CNI files of a cluster, compared between its hosts. A file of its own: `ports` is another subject."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.untrusted import at, items, line
from ..host import facts
from ..host.preflight_checks import reason


def cni_dir(hostvars: Any, groups: Mapping[str, Sequence[str]]) -> str:
    """Return the folder that the nodes of the cluster have; empty if no checked host is a node.

    A host that is no node may have the settings of an earlier cluster, so it does not count.

    :param hostvars: Ansible's variables of all hosts, after their checks.
    """
    for name in dict.fromkeys([*groups.get("control_plane", ()), *groups.get("cluster", ())]):
        known = at(hostvars.raw_get(name), "__base_preflight")
        if at(known, "cluster") and (found := at(known, "host", "cni_dir")):
            return _folder(found)
    return ""


def cni_dir_of(settings: Sequence[str]) -> str:
    """Return the folder in the first of these containerd settings (base64) that has one; empty without settings."""
    for each in settings:
        try:
            text = base64.b64decode(each, validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            continue
        if text:
            found = facts.CNI_SETTING.search(text)
            return found[1] if found else facts.CNI_DIR
    return ""


def _folder(value: Any) -> str:
    """Return the folder that a host reports, if it has the form of one; else containerd's default."""
    found = facts.CNI_SETTING.fullmatch(f'conf_dir = "{line(value)}"')
    return found[1] if found else facts.CNI_DIR


def cni_reasons(hostvars: Any, host: str, folder: str) -> list[dict[str, str]]:
    """Return why a new host cannot be a node: CNI files of others in the cluster's folder, or an unknown folder.

    :param folder: empty if there is a cluster, and none of its nodes answers.
    """
    known = at(hostvars.raw_get(host), "__base_preflight")
    if at(known, "cluster") != {}:
        return []
    if not folder:
        return [reason("cni_unknown").as_dict()]
    files = [line(each) for each in items(at(known, "cni_files", folder))]
    return [reason("cni_files", files=", ".join(f"{folder}/{name}" for name in files)).as_dict()] if files else []
