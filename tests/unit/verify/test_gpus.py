"""The checks of GPUs, a row for each thing that can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.filter.gpu_hosts import gpu_hosts
from tests.unit.verify.views import site_checks
from trainyard.verify.cluster_checks import Expected, node_row
from trainyard.verify.observation import Observation
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

INFO = {"gpus": [{}, {}], "driver": "580.95.05", "library_version": "580.95.05", "module_version": "580.95.05"}
INFO |= {"source": "nvml", "error": None, "on_bus": None, "skew": False, "healthy": True}
DIVIDED = {**INFO, "gpus": [{"mig": "enabled", "mig_devices": 7}, {"mig": "enabled", "mig_devices": 3}]}
DEAD = {**INFO, "source": "none", "error": "NVML: Driver Not Loaded", "gpus": [], "driver": None, "healthy": False}


def node(capacity: int, allocatable: int, name: str = "w1") -> dict[str, Any]:
    offers = {"capacity": {"nvidia.com/gpu": str(capacity)}, "allocatable": {"nvidia.com/gpu": str(allocatable)}}
    return {"metadata": {"name": name}, "status": offers if capacity else {}}


def wanted(**changes: Any) -> dict[str, Any]:
    return {"w1": {"gpus": None, "replicas": 1, "mig_strategy": "none", "info": INFO, **changes}}


def results(gpus: dict[str, Any], *nodes: dict[str, Any]) -> dict[str, tuple[str, str]]:
    expected = Expected(nodes=[], kubelet_version="1", containerd_version="2", gpus=gpus)
    seen = Observation("", list(nodes), {}, [])
    names = ("gpu_drivers", "gpus_offered", "gpus_healthy")
    return {check.name: (check.result, check.detail) for check in site_checks(expected, seen, None, names)}


def test_a_site_without_gpus_has_no_such_checks() -> None:
    assert results({}, node(0, 0)) == {}


@pytest.mark.parametrize(
    ("changes", "offers"),
    [
        ({}, (2, 2)),
        ({"gpus": 2}, (2, 2)),
        ({"replicas": 4}, (8, 8)),
        ({"info": DIVIDED}, (2, 2)),
        ({"info": DIVIDED, "mig_strategy": "single"}, (10, 10)),
        ({"info": DIVIDED, "mig_strategy": "single", "replicas": 2}, (20, 20)),
        ({"info": DIVIDED, "mig_strategy": "mixed"}, (0, 0)),
        ({"mig_strategy": "single"}, (2, 2)),
        ({"info": {**INFO, "on_bus": 2}}, (2, 2)),
        # A display that is no matter of pods.
        ({"gpus": 2, "info": {**INFO, "on_bus": 3}}, (2, 2)),
    ],
)
def test_a_site_that_offers_what_it_has(changes: dict[str, Any], offers: tuple[int, int]) -> None:
    found = results(wanted(**changes), node(*offers))
    assert {result for result, _ in found.values()} == {PASS}
    assert found["gpu_drivers"][1] == "driver 580.95.05 on 1 nodes (unpinned on w1: nvidia_driver_version)"


def test_the_driver_that_the_inventory_names() -> None:
    assert results(wanted(version="580.95.05"), node(2, 2))["gpu_drivers"] == (PASS, "driver 580.95.05 on 1 nodes")
    result, detail = results(wanted(version="580.105.08"), node(2, 2))["gpu_drivers"]
    assert (result, "w1 has the driver 580.95.05, but the inventory has 580.105.08" in detail) == (FAIL, True)


@pytest.mark.parametrize(
    ("changes", "offers", "name", "said"),
    [
        ({}, (1, 1), "gpus_offered", "w1 offers 1 GPUs but should offer 2"),
        ({}, (0, 0), "gpus_offered", "w1 offers 0 GPUs but should offer 2"),
        ({"gpus": 3}, (2, 2), "gpus_offered", "the driver of w1 shows 2 GPUs, but the inventory has 3"),
        (
            {"info": {**INFO, "on_bus": 3}},
            (2, 2),
            "gpus_offered",
            "the driver of w1 shows 2 GPUs, but the PCI bus has 3",
        ),
        ({"info": DIVIDED, "mig_strategy": "single"}, (7, 7), "gpus_offered", "w1 offers 7 GPUs but should offer 10"),
        (
            {"info": {**INFO, "gpus": [{"mig": "enabled", "mig_devices": 0}] * 2}, "mig_strategy": "single"},
            (0, 0),
            "gpus_offered",
            "w1 has a GPU in MIG mode without an instance",
        ),
        (
            {"info": {**INFO, "gpus": [DIVIDED["gpus"][0], {"mig": "disabled"}]}, "mig_strategy": "single"},
            (0, 0),
            "gpus_offered",
            "w1 has GPUs with and without MIG mode",
        ),
        (
            {"info": {**INFO, "pending": "the module 570.1 for its next boot, and the library 580.95.05"}},
            (2, 2),
            "gpu_drivers",
            "w1 has the module 570.1 for its next boot, and the library 580.95.05: its GPUs are gone after a restart",
        ),
        ({}, (2, 1), "gpus_healthy", "w1 has 1 unhealthy of 2: repair it, then run playbooks/gpu_recover.yml"),
        ({"info": {**INFO, "healthy": False}}, (2, 2), "gpus_healthy", "the driver of w1 reports a fault"),
    ],
)
def test_what_is_wrong_fails(changes: dict[str, Any], offers: tuple[int, int], name: str, said: str) -> None:
    found = results(wanted(**changes), node(*offers))
    result, detail = found.pop(name)
    assert result == FAIL
    assert said in detail
    assert {result for result, _ in found.values()} == {PASS}


def test_a_skew_is_named_once_with_its_remedy() -> None:
    skew = {**INFO, "skew": True, "library_version": "580.105.08", "healthy": False}
    skew["gpus"] = []
    found = results(wanted(info=skew, gpus=2), node(2, 0))
    assert found["gpu_drivers"][0] == FAIL
    assert "w1 has the module 580.95.05 loaded but the library 580.105.08" in found["gpu_drivers"][1]
    assert "playbooks/gpu_driver.yml" in found["gpu_drivers"][1]
    assert found["gpus_offered"][0] == found["gpus_healthy"][0] == PASS


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (DEAD, "the driver of w1 does not answer (NVML: Driver Not Loaded)"),
        ({**DEAD, "on_bus": 2}, "the driver of w1 does not answer (NVML: Driver Not Loaded)"),
        ({**DEAD, "source": "nvml"}, "the driver of w1 shows no GPU"),
    ],
)
def test_a_driver_that_shows_nothing_fails(info: dict[str, Any], said: str) -> None:
    """A kernel without the driver's module: the node offers nothing, and nothing agrees with nothing."""
    found = results(wanted(info=info), node(0, 0))
    assert found["gpu_drivers"] == (FAIL, said)
    assert found["gpus_offered"][0] == (FAIL if info["on_bus"] else UNKNOWN)
    assert found["gpus_healthy"][0] == UNKNOWN


def test_a_host_that_was_not_asked_leaves_it_open() -> None:
    found = results(wanted(info={}), node(2, 2))
    assert (found["gpu_drivers"][0], found["gpus_offered"][0]) == (UNKNOWN, UNKNOWN)
    assert results(wanted(info={}), node(0, 0))["gpus_healthy"][0] == UNKNOWN
    assert results(wanted(info={}, gpus=2), node(2, 2))["gpus_offered"][0] == PASS


def test_the_receipt_shows_gpus_where_there_are_some() -> None:
    assert node_row(node(2, 1))["gpus"] == {"offered": 2, "healthy": 1}
    assert "gpus" not in node_row(node(0, 0))


def test_inventory_and_driver_make_what_is_expected() -> None:
    hostvars = {
        "w1": {"ansible_facts": {"gpus": {**INFO, "cuda": "13.0"}}, "nvidia_driver_version": "580.95.05-0ubuntu1"},
        "w2": {"kubernetes_node_name": "two", "device_plugin_gpus": 1, "device_plugin_sharing": "time_slicing"},
        "w3": {"device_plugin_sharing": "time_slicing", "device_plugin_replicas": 4},
        "w4": {"device_plugin_replicas": 4, "device_plugin_mig_strategy": "mixed"},
    }
    found = gpu_hosts(["w1", "w2", "w3", "w4"], hostvars)
    info = found["w1"].pop("info")
    assert found["w1"] == {"gpus": None, "replicas": 1, "mig_strategy": "none", "version": "580.95.05"}
    assert {key: info[key] for key in INFO if key != "gpus"} == {key: INFO[key] for key in INFO if key != "gpus"}
    # Of a GPU that a host reports only what the verdict looks at is taken, each field of its own type.
    assert info["gpus"] == [{"mig": None, "mig_devices": 0, "lost": False}] * 2 and "cuda" not in info
    assert found["two"] == {"gpus": 1, "replicas": 2, "mig_strategy": "none", "version": "", "info": {}}
    assert (found["w3"]["replicas"], found["w4"]["replicas"], found["w4"]["mig_strategy"]) == (4, 1, "mixed")
