"""Readers of what hosts and the network answer: nvidia-smi, journals, facts, package indexes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

from hypothesis import given
from hypothesis import strategies as st

from plugins.filter.gpu_hosts import gpu_fault, gpu_hosts, gpu_units, mig_fault
from plugins.filter.kubelets import kubelet_hosts
from tests.unit.hostile.values import EXAMPLES, JSON, TEXTS, documents
from trainyard.bundle import index
from trainyard.core.errors import TrainyardError
from trainyard.gpu import smi
from trainyard.gpu.gpu_metrics import render
from trainyard.gpu.look import xids
from trainyard.host.packages import removals

ELEMENTS = ("uuid", "product_name", "minor_number", "serial", "fb_memory_usage/total", "fb_memory_usage/used",
            "temperature/gpu_temp", "gpu_power_readings/power_draw", "utilization/gpu_util", "mig_mode/current_mig",
            "ecc_errors/volatile/dram_uncorrectable", "gpu_recovery_action", "pci/pci_bus_id")  # fmt: skip
INFO = ("gpus", "count", "driver_version", "library_version", "module_version", "skew", "pending", "healthy", "source")


def element(path: str, text: str) -> str:
    shown = escape("".join(each for each in text if each.isprintable()))
    parts = path.split("/")
    return "".join(f"<{each}>" for each in parts) + shown + "".join(f"</{each}>" for each in reversed(parts))


@EXAMPLES
@given(st.dictionaries(st.sampled_from(ELEMENTS), TEXTS), TEXTS, TEXTS)
def test_nvidia_smi(values: dict[str, str], other: str, capabilities: str) -> None:
    inside = "".join(element(path, text) for path, text in values.items())
    found = smi.read(
        f"<nvidia_smi_log><driver_version>{escape('1')}</driver_version><gpu>{inside}</gpu></nvidia_smi_log>",
        capabilities,
    )
    render(found, "w1")
    try:
        smi.read(other)
    except TrainyardError:
        return
    raise AssertionError(f"{other!r} is no output of nvidia-smi")


@EXAMPLES
@given(st.lists(st.one_of(TEXTS, TEXTS.map(lambda each: f"NVRM: Xid (PCI:0000:01:00): {each}, pid"))).map("\n".join))
def test_journals(journal: str) -> None:
    assert all(isinstance(number, int) for _, number in xids(journal))


@EXAMPLES
@given(TEXTS)
def test_simulations_of_apt(text: str) -> None:
    removals(f"Remv {text}\n{text}")


@EXAMPLES
@given(
    st.one_of(
        JSON,
        documents("schema", "artefacts"),
        st.fixed_dictionaries({"schema": st.just(index.SCHEMA), "artefacts": JSON}),
    )
)
def test_indexes_of_artefacts(document: Any) -> None:
    with mock.patch.object(index, "_fetch", lambda *_: json.dumps(document).encode("utf-8", "replace")):
        try:
            found = index.read("https://mirror/index.json")
            index.choose(found, {"a": "b"}, "https://mirror/index.json")
        except TrainyardError:
            return
        assert not found or all(isinstance(each, dict) for each in found.values())


@EXAMPLES
@given(JSON, documents(*INFO), TEXTS)
def test_facts_of_a_host(facts: Any, info: dict[str, Any], name: str) -> None:
    for known in ({"ansible_facts": facts}, {"ansible_facts": {"gpus": info}}):
        gpu_hosts(["w1"], {"w1": known})
        kubelet_hosts(["w1"], {"w1": {**known, "ansible_host": name}})
    gpu_fault(info), gpu_units(info, 1, "none"), mig_fault(info, "single")


def test_an_index_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    with mock.patch.object(index, "_fetch", lambda *_: b"<html>" + b"[" * 100_000):
        try:
            index.read("https://mirror/index.json")
        except TrainyardError:
            return
    raise AssertionError("a page is no index")
