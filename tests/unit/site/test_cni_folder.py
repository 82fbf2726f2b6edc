"""The folder of CNI files: an existing cluster keeps its own, and files of others refuse a new host only there."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.site.test_port_probes import Hosts
from trainyard.site.cni_folder import cni_dir, cni_dir_of, cni_reasons

GROUPS = {"control_plane": ["cp1", "cp2"], "cluster": ["cp1", "cp2", "w1"]}
OWN = "/etc/cni/trainyard.d"


def host(folder: Any = None, cluster: Any = "k8s", **more: Any) -> dict[str, Any]:
    return {"__base_preflight": {"host": {"cni_dir": folder}, "cluster": cluster, **more}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("cp1", "cp2", "w1", "expected"),
    [
        (host("", {}), host("", {}), host("", {}), ""),
        ({}, {}, {}, ""),
        (host(OWN), host(""), {}, OWN),
        (host(""), host("/etc/cni/net.d"), {}, "/etc/cni/net.d"),
        # The control plane does not answer.
        ({}, {"host_reasons": None}, host("/etc/cni/net.d"), "/etc/cni/net.d"),
        # The first host was reset, and has the settings of an earlier cluster.
        (host("/etc/cni/net.d", {}), host(OWN), {}, OWN),
        (host('/a"\nroot = "/b'), host(""), {}, "/etc/cni/net.d"),
        (host(["x"]), host(""), {}, "/etc/cni/net.d"),
    ],
)
def test_an_existing_cluster_keeps_its_folder(cp1: Any, cp2: Any, w1: Any, expected: str) -> None:
    assert cni_dir(Hosts(cp1=cp1, cp2=cp2, w1=w1), GROUPS) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], ""),
        (["", "no base64"], ""),
        (["", encoded(f'[x]\n  conf_dir = "{OWN}"\n')], OWN),
        ([encoded("# Managed by trainyard\nversion = 3\n")], "/etc/cni/net.d"),
    ],
)
def test_the_settings_of_a_host_outside_the_run_are_read(settings: list[str], expected: str) -> None:
    assert cni_dir_of(settings) == expected


def test_files_of_others_refuse_a_new_host_in_that_folder_alone() -> None:
    files = {"/etc/cni/net.d": ["87-podman-bridge.conflist"], OWN: []}
    hosts = Hosts(w1=host("", {}, cni_files=files), w2=host("", {"name": "k"}, cni_files=files))
    (found,) = cni_reasons(hosts, "w1", "/etc/cni/net.d")
    assert found["code"] == "cni_files" and "/etc/cni/net.d/87-podman-bridge.conflist" in found["cause"]
    assert cni_reasons(hosts, "w1", OWN) == cni_reasons(hosts, "w2", "/etc/cni/net.d") == []


def test_a_new_host_is_refused_if_the_folder_of_the_cluster_is_unknown() -> None:
    hosts = Hosts(w1=host("", {}), w2=host("", {"name": "k"}))
    assert [each["code"] for each in cni_reasons(hosts, "w1", "")] == ["cni_unknown"]
    assert cni_reasons(hosts, "w2", "") == []
