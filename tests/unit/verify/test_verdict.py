"""The verdict as a table, and the receipt as a file."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.verify import verdict
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN, Check

PASSED = {
    "name": "m",
    "namespace": "trainings",
    "result": "passed",
    "steps": 2000,
    "steps_per_second": 121.987,
    "accuracy": 0.9366,
    "accuracy_bound": 0.9,
    "left_alone": False,
}


def receipt(**changes: Any) -> dict[str, Any]:
    made = verdict.make_receipt(
        [
            Check("api_ready", PASS, "the API server is ready"),
            Check("training", PASS, "m ended after 2000 steps", run="m"),
        ],
        nodes=[{"name": "cp1", "ready": True, "kubelet": "1.36.3", "containerd": "2.3.4"}],
        versions={"kubelet": "1.36.3", "containerd": "2.3.4", "etcd": "3.6.14-0"},
        made_images={},
        trainings=[PASSED],
        warnings=[],
        measured={"restarts": {}},
        wall_seconds=300.4,
        written_at="2026-11-21T12:00:00+00:00",
    )
    return {**made, **changes}


@pytest.mark.parametrize("results", list(itertools.product([PASS, FAIL, UNKNOWN], repeat=3)))
def test_verdict_over_every_combination(results: tuple[str, ...]) -> None:
    expected = FAIL if FAIL in results else UNKNOWN if UNKNOWN in results else PASS
    assert verdict.verdict(results) == expected


@pytest.mark.parametrize(("results", "expected"), [([], UNKNOWN), ([PASS], PASS), ([UNKNOWN], UNKNOWN), ([FAIL], FAIL)])
def test_verdict_of_few_checks(results: list[str], expected: str) -> None:
    assert verdict.verdict(results) == expected


def test_a_result_that_is_none_is_a_bug() -> None:
    with pytest.raises(ValueError, match="passed"):
        verdict.verdict([PASS, "passed"])


def test_receipt_carries_the_verdict_of_its_checks() -> None:
    assert receipt()["verdict"] == PASS
    assert receipt()["checks"][0] == {"name": "api_ready", "result": PASS, "detail": "the API server is ready"}
    json.dumps(receipt())


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"wall_seconds": 12.0}, True),
        ({"written_at": "2027-01-01T00:00:00+00:00"}, True),
        ({"measured": {"restarts": {"coredns": 1}}}, True),
        ({"verdict": FAIL}, False),
        ({"trainings": []}, False),
        ({"nodes": []}, False),
        ({"warnings": ["node x is cordoned"]}, False),
        ({"schema": 3}, False),
    ],
)
def test_what_counts_as_a_difference(changes: dict[str, Any], same: bool) -> None:
    assert (verdict.stable(receipt(**changes)) == verdict.stable(receipt())) is same


@pytest.mark.parametrize(
    ("device", "shown"),
    [
        ({"compute": "cpu", "gpu_allocated": 1}, "compute            cpu, 1 GPU allocated and not used"),
        ({"compute": "gpu", "gpu_allocated": 2}, "compute            gpu, 2 allocated"),
        ({"compute": "cpu", "gpu_allocated": 0}, "compute            cpu"),
    ],
)
def test_the_table_says_what_a_training_computed_on(device: dict[str, Any], shown: str) -> None:
    lines = verdict.table(receipt(trainings=[{**PASSED, **device}]), "")
    assert shown in lines
    assert any(line.startswith("accuracy") and line.endswith("bound 0.9") for line in lines)
    assert not any(line.startswith("compute") for line in verdict.table(receipt(), ""))


def test_table_says_everything_and_ends_with_the_path() -> None:
    lines = verdict.table(receipt(warnings=["node x is cordoned"]), "/srv/receipt.json")
    text = "\n".join(lines)
    for part in (
        "api_ready",
        "cp1",
        "1.36.3",
        "2.3.4",
        "2000",
        "122",
        "0.9366 on held-out data, bound 0.9",
        "300 s",
        "3.6.14-0",
    ):
        assert part in text
    assert "warning: node x is cordoned" in lines
    assert lines[-2].split() == ["verdict", "pass"]
    assert lines[-1].split() == ["receipt", "/srv/receipt.json"]


def test_table_of_a_training_of_speech() -> None:
    speech = {**PASSED, "accuracy": 0.88, "accuracy_bound": 0.7, "character_error_rate": 0.12, "word_error_rate": 0.3}
    lines = verdict.table(receipt(trainings=[speech]), "")
    begin = lines.index("accuracy           0.88 on held-out data, bound 0.7")
    assert lines[begin + 1 : begin + 3] == ["character error rate 0.12", "word error rate    0.3"]


def test_table_without_training_time_and_path() -> None:
    lines = verdict.table(receipt(trainings=[], nodes=[], wall_seconds=None), "")
    assert not any(line.startswith(("accuracy", "wall time", "node")) for line in lines)
    assert lines[-1].endswith("(not written)")


def test_checks_of_a_training_name_its_run() -> None:
    assert receipt()["checks"][1] == {
        "name": "training",
        "run": "m",
        "result": "pass",
        "detail": "m ended after 2000 steps",
    }
    assert [verdict.title(check) for check in receipt()["checks"]] == ["api_ready", "training m"]


def test_table_has_a_block_for_each_training() -> None:
    going = {"name": "a-longer-name", "namespace": "trainings", "result": "running", "left_alone": True}
    checks = [*receipt()["checks"], {"name": "training", "run": going["name"], "result": PASS, "detail": "it goes on"}]
    lines = verdict.table(receipt(trainings=[PASSED, going], checks=checks), "")
    assert "training a-longer-name pass     it goes on" in lines
    assert "training           m passed" in lines
    assert "training           a-longer-name running, left unchanged: its description differs" in lines


def test_a_receipt_of_schema_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    old = {"name": "m", "result": "passed", "steps": 2000}
    for training, read in ((old, [{**old, "left_alone": False}]), ({}, [])):
        made = {key: value for key, value in receipt(schema=1, training=training).items() if key != "trainings"}
        path.write_text(json.dumps({**made, "made_images": {"a": "sha256:1"}}))
        found = verdict.read_receipt(str(path))
        assert (found["trainings"], found["made_images"]) == (read, {"a": "sha256:1"})
        assert "training" not in found
        assert verdict.stable(found) != verdict.stable(receipt()), "it is written in the shape of today"


def test_receipt_is_written_whole_and_readable(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text("old")
    verdict.write_receipt(str(path), receipt())
    assert verdict.read_receipt(str(path)) == receipt()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["receipt.json"]


def test_failed_write_leaves_the_old_receipt(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        verdict.write_receipt(str(path), {"broken": object()})
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["receipt.json"]


def test_missing_directory_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"receipt.json cannot be written: No such file.*verify_receipt_path"):
        verdict.write_receipt(str(tmp_path / "no" / "receipt.json"), receipt())


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "\x00", "{}", '{"schema": 3}'])
def test_unreadable_receipt_counts_as_none(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "receipt.json"
    if text is not None:
        path.write_text(text)
    assert verdict.read_receipt(str(path)) == {}
