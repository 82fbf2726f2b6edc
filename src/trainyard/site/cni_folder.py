"""The folder of CNI files of a cluster, compared between its hosts. A file of its own: `ports` is another subject."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.untrusted import at, items, line
from ..host import facts
from ..host.preflight_checks import reason


def cni_dir(hostvars: Any, groups: Mapping[str, Sequence[str]], settings: str) -> str:
    """Return the folder that the control plane has; empty if there is no cluster yet.

    :param hostvars: Ansible's variables of all hosts, after their checks.
    :param settings: base64 of the containerd settings of one control plane host, if no check has read any.
    """
    for name in groups.get("control_plane", ()):
        if found := at(hostvars.raw_get(name), "__base_preflight", "host", "cni_dir"):
            return _folder(found)
    try:
        text = base64.b64decode(settings, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
    found = facts.CNI_SETTING.search(text)
    return found[1] if found else facts.CNI_DIR if text else ""


def _folder(value: Any) -> str:
    """Return the folder that a host reports, if it has the form of one; else containerd's default."""
    found = facts.CNI_SETTING.fullmatch(f'conf_dir = "{line(value)}"')
    return found[1] if found else facts.CNI_DIR


def cni_reasons(hostvars: Any, host: str, folder: str) -> list[dict[str, str]]:
    """Return the reason to refuse a new host with CNI files of others in the cluster's folder."""
    known = hostvars.raw_get(host)
    if at(known, "__base_preflight", "cluster") not in (None, {}):
        return []
    files = [line(each) for each in items(at(known, "__base_preflight", "cni_files", folder))]
    return [reason("cni_files", files=", ".join(f"{folder}/{name}" for name in files)).as_dict()] if files else []
