"""Tests of the calls of `make proof` programs to a site, their order, and their output, with a recording site."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import bare
import catalogue
import page
import pytest
import stand
import wide
from memory import Peak
from timed import BenchError

THREADS = {"OMP_NUM_THREADS": "2"}
BORN = "2026-11-22T12:00:00Z"


def line(event: str, **values: object) -> str:
    return json.dumps({"event": event, "time": time.time(), **values})


class Site(stand.Stand):
    """A site on which every run passes immediately."""

    def __init__(self, folder: Path, **record: Any) -> None:
        super().__init__(folder, "lab", folder)
        self.calls: list[str] = []
        self.log = folder / "x-chief-0-0-abcde.log"
        told = [line("start", cpus=[0, 1], threads=THREADS, tensorflow="2"), line("connected"), line("step", step=1)]
        self.log.write_text("\n".join([*told, line("end", steps_per_second=50.0)]) + "\n", encoding="utf-8")
        self.kept = {
            "result": "no_bound",
            "steps": 200,
            "released": True,
            "seconds": 9.0,
            "accuracy": 0.97,
            "apply_to_completion_seconds": 12.0,
            "roles": {str(number): 0 for number in range(wide.PODS)},
            "files": {"image": "registry/tensorflow@sha256:1"},
            "logs": [str(self.log)],
        } | record

    @property
    def api(self) -> Any:  # type: ignore[override]
        return self

    def play(self, playbook: str, *arguments: str, limit: float = 0.0) -> tuple[float, str]:
        self.calls.append(" ".join([Path(playbook).stem, *(each for each in arguments if each.startswith("run="))]))
        return 3.0, "cp1 : ok=9    changed=0    unreachable=0"

    def program(self, *arguments: str) -> tuple[float, str]:
        return 1.0, 'bench-submit "step"'

    def forget(self, run: str) -> None:
        self.calls.append(f"forget {run}")

    def record(self, run: str) -> dict[str, Any]:
        return {**self.kept, "steps": {"bench-long": 2000, "bench-cnn": 600}.get(run, self.kept["steps"])}

    def pods(self, run: str, role: str = "") -> list[dict[str, Any]]:
        state = "Succeeded" if "train run=wide" in self.calls[1:2] and len(self.calls) > 2 else "Running"
        pod = {"metadata": {"name": "a", "namespace": "trainings"}, "status": {"phase": state}}
        return [pod] * wide.PODS

    def on_node(self, node: str, *command: str, given: str = "") -> str:
        self.calls.append(f"{node} {' '.join(command[3:])}")
        assert "def main" in given
        return self.log.read_text(encoding="utf-8")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Return rows by the name of their table."""
    tables: dict[str, list[list[str]]] = {}
    monkeypatch.setattr(page, "write", lambda name, head, rows: tables.update({name: rows}))
    return tables


def test_bare_runs_both_in_turn_and_compares_what_they_had(tmp_path: Path, written: Mapping[str, Any]) -> None:
    site = Site(tmp_path)
    assert bare.measure(site, 2)
    cluster, process = (
        "train run=bench-bare",
        f"worker1 bare.sh {site.kept['files']['image']} {bare.ROOT} OMP_NUM_THREADS=2",
    )
    assert site.calls == [cluster, process, cluster, cluster, process, "forget bench-bare"]
    assert written["bare"][-1][1] == "1.000 (1.000 to 1.000)"


def test_catalogue_measures_each_as_often_and_writes_one_table(
    tmp_path: Path, written: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    monkeypatch.setattr(catalogue, "until_it_steps", lambda *_: None)
    assert catalogue.measure(site, list(catalogue.MEASURES), 3)
    assert site.calls.count("site") == 3 and site.calls.count("train run=bench-seed") == 3
    assert [row[2] for row in written["catalogue"]] == ["3"] * 9
    assert [catalogue.ACCURACY, "0.9700 (0.9700 to 0.9700)", "3", "at least 0.96"] in written["catalogue"]


def test_catalogue_fails_where_a_run_has_not_made_its_steps(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="at step 199 of 200"):
        catalogue.seed(Site(tmp_path, steps=199), 1)


def test_wide_submits_waits_for_all_pods_and_follows(
    tmp_path: Path, written: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    monkeypatch.setattr(wide, "live_object", lambda *_: {"metadata": {"creationTimestamp": BORN}})
    monkeypatch.setattr(wide, "until_all_run", lambda *_: 200.0)
    monkeypatch.setattr(wide, "Sampler", lambda lab: nullcontext(Peak()))
    assert wide.measure(site)
    assert site.calls == ["forget wide", "train run=wide", "train run=wide", "forget wide"]
    assert written["wide"][0][1:] == ["200 s", "240 s"]


def test_wide_waits_until_all_pods_run_at_once(tmp_path: Path) -> None:
    assert wide.until_all_run(Site(tmp_path), time.time()) < 5
