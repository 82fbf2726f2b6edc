"""The report of gpu-proof: results, exit status, and texts of a hostile host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.gpu.proof import main as program
from trainyard.gpu.proof.report import (
    FAIL,
    NOT_RUN,
    PASS,
    STATUS,
    Kit,
    Report,
    Result,
    failed,
    host,
    not_run,
    passed,
    text,
)

NONE = Result("", "")


@pytest.mark.parametrize(
    ("results", "whole", "status"),
    [
        ([PASS, PASS], PASS, 0),
        ([PASS, FAIL, NOT_RUN], FAIL, 1),
        ([PASS, NOT_RUN], NOT_RUN, 2),
        ([], NOT_RUN, 2),
    ],
)
def test_the_worst_stage_decides(results: list[str], whole: str, status: int) -> None:
    report = Report("2026-11-27", [(f"stage{n}", Result(each, ""), 0.1) for n, each in enumerate(results)])
    assert (report.result, STATUS[report.result]) == (whole, status)


def test_a_hostile_driver_cannot_forge_lines() -> None:
    shown = text("nvml", failed("name\x1b[2J\nhost        pass\r", model="\x07x"), 1.0)
    assert shown == "nvml        fail        1.0 s  name host pass (model x)"


def test_the_report_is_json_without_the_name_of_the_host(tmp_path: Path) -> None:
    report = Report("2026-11-27", [("nccl", passed("right", gb_per_s=float("nan"), name="a\x1bb"), 1.25)])
    written = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    (stage,) = written["stages"]
    assert (stage["stage"], stage["result"], stage["detail"], stage["seconds"]) == ("nccl", "pass", "right", 1.2)
    assert stage["figures"]["gb_per_s"] is None
    assert "\x1b" not in stage["figures"]["name"]
    assert written["host"].keys() == {"system", "kernel", "architecture", "processor", "cpus", "python"}


def test_the_host_is_read_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    found = host(tmp_path)
    assert (found["system"], found["processor"]) == ("Ubuntu 24.04.3 LTS", "")


def test_each_error_is_the_failure_of_its_stage(tmp_path: Path) -> None:
    def refused(kit: Kit) -> Result:
        raise TrainyardError("NVML reports no GPU.", remedy="Load the driver.")

    def broken(kit: Kit) -> Result:
        raise KeyError("x")

    kit = Kit(tmp_path, tmp_path, {})
    assert program.outcome(refused, kit) == failed("NVML reports no GPU. Load the driver.")
    assert program.outcome(broken, kit) == failed("KeyError: 'x'")


def test_the_program_runs_the_requested_stages_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def stage(name: str, result: Result) -> Result:
        seen.append(name)
        return result

    stages = {
        "host": lambda kit: stage("host", passed("good")),
        "nvml": lambda kit: stage("nvml", not_run("missing")),
        "cdi": lambda kit: stage("cdi", failed("broken")),
    }
    monkeypatch.setattr(program, "STAGES", stages)
    output = tmp_path / "report.json"
    assert program.main(tmp_path, ["--stage", "nvml", "--stage", "host", "--output", str(output)]) == 2
    assert seen == ["host", "nvml"]
    assert capsys.readouterr().out.splitlines()[-1] == "result      not_run"
    assert [each["result"] for each in json.loads(output.read_text())["stages"]] == ["pass", "not_run"]
    assert program.main(tmp_path, ["--json"]) == 1
    assert json.loads(capsys.readouterr().out)["result"] == "fail"
