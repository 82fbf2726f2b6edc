"""The folder of CNI files: an existing cluster keeps its own, and files of others refuse a new host only there."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.site.test_port_probes import Hosts
from trainyard.site.cni_folder import cni_dir, cni_reasons

GROUPS = {"control_plane": ["cp1", "cp2"]}
OWN = "/etc/cni/trainyard.d"


def host(folder: Any = None, **more: Any) -> dict[str, Any]:
    return {"__base_preflight": {"host": {"cni_dir": folder}, **more}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("cp1", "cp2", "settings", "expected"),
    [
        (host(""), host(""), "", ""),
        ({}, {}, "", ""),
        (host(OWN), host(""), "", OWN),
        (host(""), host("/etc/cni/net.d"), "", "/etc/cni/net.d"),
        ({}, {}, encoded(f'[x]\n  conf_dir = "{OWN}"\n'), OWN),
        ({}, {}, encoded("# Managed by trainyard\nversion = 3\n"), "/etc/cni/net.d"),
        ({}, {}, "no base64", ""),
        (host('/a"\nroot = "/b'), host(""), "", "/etc/cni/net.d"),
        (host(["x"]), host(""), "", "/etc/cni/net.d"),
    ],
)
def test_an_existing_cluster_keeps_its_folder(cp1: Any, cp2: Any, settings: str, expected: str) -> None:
    assert cni_dir(Hosts(cp1=cp1, cp2=cp2), GROUPS, settings) == expected


def test_files_of_others_refuse_a_new_host_in_that_folder_alone() -> None:
    files = {"/etc/cni/net.d": ["87-podman-bridge.conflist"], OWN: []}
    hosts = Hosts(w1=host("", cluster={}, cni_files=files), w2=host("", cluster={"name": "k"}, cni_files=files))
    (found,) = cni_reasons(hosts, "w1", "/etc/cni/net.d")
    assert found["code"] == "cni_files" and "/etc/cni/net.d/87-podman-bridge.conflist" in found["cause"]
    assert cni_reasons(hosts, "w1", OWN) == cni_reasons(hosts, "w2", "/etc/cni/net.d") == []
