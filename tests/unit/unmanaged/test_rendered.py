"""The record of what runs render: written by `kube_apply` alone, and read by those who judge."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.unit.unmanaged.clusters import OWN
from tests.unit.unmanaged.objects import binding, obj, role
from trainyard.core.errors import TrainyardError
from trainyard.unmanaged import rendered
from trainyard.unmanaged.rendered import kept_of, missing_parts, path_of, plan_record, read


def kubeconfig(tmp_path: Path) -> str:
    return str(tmp_path / "kubeconfig")


def test_what_is_kept_is_what_may_open_a_door() -> None:
    secret = obj("Secret", "tls", "web", data={"key": "c2VjcmV0"})
    assert kept_of([secret, obj("ConfigMap", "a", "web"), obj("Service", "s", "web", spec={"type": "ClusterIP"})]) == {}
    kept = kept_of([role("r", "get /pods", namespace="web"), binding("b", "User eve", role="Role r", namespace="web")])
    assert kept == {
        "Role web/r": {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
        "RoleBinding web/b": {"role": ["Role", "web", "r"], "subjects": [["User", "", "eve"]]},
    }


def test_a_part_is_replaced_and_others_stay(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    first = plan_record(path, "network", OWN)
    assert first.before == {"record of what network renders": "missing"} and not Path(path_of(path)).exists()
    first.execute()
    plan_record(path, "dashboard", [binding("alice", "User alice"), binding("bob", "User bob")]).execute()
    plan_record(path, "dashboard", [binding("bob", "User bob")]).execute()
    assert Path(path_of(path)).stat().st_mode & 0o777 == 0o600
    found = read(path)
    assert found.parts == {"network", "dashboard"}
    assert "ClusterRoleBinding bob" in found.objects and "ClusterRoleBinding alice" not in found.objects
    assert "DaemonSet kube-system/kube-proxy" in found.objects


def test_a_second_run_writes_nothing(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    plan_record(path, "network", OWN).execute()
    assert not plan_record(path, "network", OWN).changed
    assert not plan_record(path, "network", OWN[:1], more=True).changed
    assert plan_record(path, "network", OWN[:1]).changed


def test_a_part_that_opens_nothing_is_on_record(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    assert missing_parts(read(path), ["storage"]) == ["storage"]
    plan_record(path, "storage", []).execute()
    assert missing_parts(read(path), ["storage"]) == [] and not plan_record(path, "storage", []).changed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"schema": 1, "parts": {"a": {}}}',
        '{"schema": 9, "parts": {"a": {}}}',
        '{"schema": 2, "parts": 5}',
    ],
)
def test_what_is_no_record_is_none(tmp_path: Path, text: str) -> None:
    path = kubeconfig(tmp_path)
    Path(path_of(path)).write_text(text, encoding="utf-8")
    assert read(path).parts == frozenset()
    plan_record(path, "network", OWN).execute()
    assert json.loads(Path(path_of(path)).read_text(encoding="utf-8"))["parts"].keys() == {"network"}


@pytest.mark.parametrize("more", [True, False])
def test_runs_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bool) -> None:
    path, names, reads = kubeconfig(tmp_path), [f"run{each}" for each in range(4)], rendered._parts
    parts = dict.fromkeys(names, "one") if more else {name: name for name in names}
    plans = [plan_record(path, part, [binding(name, "User eve")], more=more) for name, part in parts.items()]

    def slow(place: str) -> dict[str, dict[str, Any]]:
        found = reads(place)
        time.sleep(0.05)
        return found

    monkeypatch.setattr(rendered, "_parts", slow)
    with ThreadPoolExecutor(len(plans)) as pool:
        for each in [pool.submit(plan.execute) for plan in plans]:
            each.result()
    found = read(path)
    assert found.parts == set(parts.values())
    assert found.objects.keys() == {f"ClusterRoleBinding {name}" for name in names}


def test_a_record_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrainyardError, match="cannot be written"):
        plan_record(str(tmp_path / "file" / "kubeconfig"), "network", OWN).execute()
    plan_record(str(tmp_path / "new" / "kubeconfig"), "network", OWN).execute()
