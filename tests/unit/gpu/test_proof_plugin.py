"""The stages `plugin` and `pods` of gpu-proof: judged values, and refusals."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from trainyard.gpu.gpu_model import Gpu, Inventory
from trainyard.gpu.proof import plugin, pods
from trainyard.gpu.proof.report import Kit

FOUND = Inventory("nvml", gpus=(Gpu(0, "GPU-1", "Tesla T4"), Gpu(1, "GPU-2", "Tesla T4")))
SEEN = {
    "report": {
        "resource": "nvidia.com/gpu",
        "devices": [{"ID": "GPU-1", "health": "Healthy"}, {"ID": "GPU-2", "health": "Healthy"}],
        "allocated": "GPU-1",
        "allocation": {"cdi_devices": [{"name": "k8s.device-plugin.nvidia.com/gpu=GPU-1"}]},
    },
    "described": [{"kind": "k8s.device-plugin.nvidia.com/gpu", "devices": [{"name": "GPU-1"}, {"name": "GPU-2"}]}],
}


def test_a_whole_offer() -> None:
    assert list(plugin.offer_faults(SEEN, FOUND)) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("report", "resource"), "nvidia.com/gpu.shared", "registered 'nvidia.com/gpu.shared'"),
        (("report", "devices"), [{"ID": "GPU-1", "health": "Healthy"}], "does not offer GPU-2"),
        (("report", "devices", 1, "health"), "Unhealthy", "reports as unhealthy: GPU-2"),
        (("report", "allocated"), "", "the allocation of no GPU"),
        (("report", "allocation"), None, "has the devices none"),
        (("described",), [], "no CDI description of the plugin has the device k8s.device-plugin.nvidia.com/gpu=GPU-1"),
    ],
)
def test_each_fault_of_an_offer(path: tuple[Any, ...], value: Any, fault: str) -> None:
    seen: Any = copy.deepcopy(SEEN)
    place = seen
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert fault in "; ".join(plugin.offer_faults(seen, FOUND))


@pytest.mark.parametrize(
    "seen", [{}, {"report": 3, "described": {}}, {"report": {"devices": [None], "allocation": []}}]
)
def test_an_offer_of_another_form(seen: dict[str, Any]) -> None:
    assert list(plugin.offer_faults(seen, FOUND))


def test_a_folder_is_covered_where_it_exists(tmp_path: Path) -> None:
    assert plugin.cover(tmp_path / "run/cdi") == tmp_path
    (tmp_path / "run/cdi").mkdir(parents=True)
    assert plugin.cover(tmp_path / "run/cdi") == tmp_path / "run/cdi"


def test_the_plugin_needs_root_and_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin.os, "geteuid", lambda: 1000)
    assert "Run the stage with sudo" in plugin.plugin(Kit(tmp_path, tmp_path, {})).detail
    monkeypatch.setattr(plugin.os, "geteuid", lambda: 0)
    monkeypatch.setattr(plugin, "CDI", tmp_path / "kit/cdi")
    (tmp_path / "kit").mkdir()
    seen = plugin.plugin(Kit(tmp_path / "kit", tmp_path, {}))
    assert seen.result == "not_run" and "Move it to another folder" in seen.detail


ROW = {"run": "gpu-proof-mnist", "state": "passed", "compute": "gpu"}


@pytest.mark.parametrize(
    ("found", "result", "detail"),
    [
        ({"trainings": [{"run": "other"}, ROW]}, "pass", "compute gpu"),
        ({"trainings": [{**ROW, "compute": "cpu"}]}, "fail", "is passed, compute cpu"),
        ({"trainings": [{**ROW, "state": "failed"}]}, "fail", "is failed"),
        ({"trainings": [3]}, "fail", "is missing, compute unknown"),
        ({}, "fail", "is missing"),
    ],
)
def test_the_run_on_the_site_is_judged(found: dict[str, Any], result: str, detail: str) -> None:
    seen = pods.judge(found)
    assert seen.result == result and detail in seen.detail


def _programs(folder: Path, train: int, rows: str) -> Kit:
    (folder / ".venv/bin").mkdir(parents=True)
    for name, text in (("ansible-playbook", f'echo "$*" >> calls\nexit {train}'), ("trainyard", f"echo '{rows}'")):
        (folder / ".venv/bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / ".venv/bin" / name).chmod(0o755)
    environment = {pods.PROJECT: str(folder), pods.INVENTORY: "inventories/mine", "PATH": "/usr/bin:/bin"}
    return Kit(folder, folder, environment)


def test_pods_runs_both_workloads(tmp_path: Path) -> None:
    assert pods.pods(_programs(tmp_path, 0, json.dumps({"trainings": [ROW]}))).result == "pass"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert ["workload=nvidia_smi" in calls[0], "workload=mnist_gpu" in calls[1], len(calls)] == [True, True, 2]
    assert all('{"workloads_require_gpu": true}' in call and "-i inventories/mine" in call for call in calls)


def test_pods_reports_a_run_that_fails(tmp_path: Path) -> None:
    assert pods.pods(_programs(tmp_path, 2, "")).detail.startswith("nvidia_smi failed in a pod")


def test_pods_needs_a_site(tmp_path: Path) -> None:
    seen = pods.pods(Kit(tmp_path, tmp_path, {pods.PROJECT: str(tmp_path)}))
    assert seen.result == "not_run" and "INVENTORY=" in seen.detail
