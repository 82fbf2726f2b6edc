"""Metrics in the form that collectors read, and alerts about metrics that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.reprovision.sites import site
from trainyard.schedule import schedule_metrics
from trainyard.schedule.notify import _interval

ALERTS = Path(__file__).parents[3] / "docs" / "reference" / "reprovisioning-alerts.yml"
REPORT: dict[str, Any] = {
    "ended": 5000.0,
    "seconds": 41.25,
    "exit_status": 1,
    "revision": {"commit": "3f2a91c", "ref": 'ma"in\\', "signed": True},
    "hosts": {"cp1": {"state": "clean"}, "w1": {"state": "drift"}, "w2": {"state": "drift"}},
    "items": [{"class": "person", "first_seen": 1000.0}, {"class": "repairable", "first_seen": 4000.0}],
}
SAMPLE = re.compile(r'(?P<name>[a-z_]+)\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+\} (?P<value>-?[0-9.e+]+)')


def text(report: dict[str, Any] = REPORT, **others: Any) -> str:
    listed = schedule_metrics.metrics(report, site="mine", **{"last_success": 5000.0, "interval": 86400.0, **others})
    return schedule_metrics.exposition(listed)


@pytest.mark.parametrize(
    "line",
    [
        'trainyard_reprovision_last_run_timestamp_seconds{site="mine"} 5000',
        'trainyard_reprovision_duration_seconds{site="mine"} 41.25',
        'trainyard_reprovision_exit_status{site="mine"} 1',
        'trainyard_reprovision_hosts{site="mine",state="drift"} 2',
        'trainyard_reprovision_hosts{site="mine",state="failed"} 0',
        'trainyard_reprovision_items{site="mine",class="person"} 1',
        'trainyard_reprovision_oldest_drift_seconds{site="mine"} 4000',
        'trainyard_reprovision_lock_refused{site="mine"} 0',
        r'trainyard_reprovision_revision_info{site="mine",commit="3f2a91c",ref="ma\"in\\",signed="yes"} 1',
    ],
)
def test_what_a_run_leaves(line: str) -> None:
    assert line in text().splitlines()


def test_a_run_without_a_report_gives_every_metric_as_well() -> None:
    bare = text({"ended": 5000.0, "exit_status": 4}, lock_refused=True)
    names = [re.findall("^# TYPE (.*) gauge$", each, re.MULTILINE) for each in (text(), bare)]
    assert names[0] == names[1]
    assert 'trainyard_reprovision_lock_refused{site="mine"} 1' in bare
    assert 'trainyard_reprovision_oldest_drift_seconds{site="mine"} 0' in bare
    assert 'signed="unknown"' in bare


def test_every_line_is_one_of_the_text_format() -> None:
    seen: list[str] = []
    for line in text().splitlines():
        if line.startswith("# HELP "):
            seen.append(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {seen[-1]} gauge"
        else:
            found = SAMPLE.fullmatch(line)
            assert found and found["name"] == seen[-1], line
    assert len(seen) == len(set(seen))


def test_the_file_is_replaced_as_a_whole_and_anybody_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "trainyard.prom"
    path.write_text("old", encoding="utf-8")
    with path.open(encoding="utf-8") as reader:
        schedule_metrics.write(str(path), schedule_metrics.metrics(REPORT, site="mine", last_success=0.0, interval=0.0))
        assert reader.read() == "old"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("began", "following", "interval"),
    [
        # The night before, every night; the same by hand in the afternoon.
        (10.0, [24.0, 48.0, 72.0], 24.0),
        (20.0, [24.0, 48.0, 72.0], 24.0),
        # Friday's run, whose next ones are those of Monday and Tuesday, and Sunday's by hand.
        (10.0, [82.0, 106.0], 72.0),
        (70.0, [82.0, 106.0], 24.0),
        # Thursday's: Friday and Monday.
        (10.0, [34.0, 106.0], 72.0),
        (10.0, [34.0], 0.0),
        (10.0, [], 0.0),
    ],
)
def test_the_interval_lets_a_weekend_pass(
    tmp_path: Path, began: float, following: list[float], interval: float
) -> None:
    def due(_: str, after: float) -> float | None:
        return next((each for each in following if each > after), None)

    assert _interval(site(tmp_path / "state"), began, due) == interval


def test_alerts_are_about_metrics_and_statuses_that_exist() -> None:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    known = set(re.findall("^# TYPE (.*) gauge$", text(), re.MULTILINE))
    used = set()
    for rule in group["rules"]:
        used |= set(re.findall(r"trainyard_\w+", rule["expr"]))
        assert set(re.findall(r"[\"|](\w+)(?=[\"|])", rule["expr"])) <= {*schedule_metrics.CLASSES}
    assert group["rules"][0]["alert"] == "ReprovisionNotRunning"
    assert used
    assert used <= known


@pytest.mark.skipif(shutil.which("promtool") is None, reason="not installed: promtool")
def test_prometheus_accepts_metrics_and_alerts() -> None:
    for argv, given in ((["check", "metrics"], text()), (["check", "rules", str(ALERTS)], "")):
        done = subprocess.run(["promtool", *argv], input=given, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
