"""systemd_unit: what is planned for which state of a unit."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError, WaitError
from trainyard.host import units
from trainyard.host.units import Service, make_plan, newer_paths, wait_ready

RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
    "ExecMainStartTimestampMonotonic": "5000000",
    "FragmentPath": "/usr/lib/systemd/system/x.service",
    "DropInPaths": "",
}
ABSENT = {"LoadState": "not-found", "ActiveState": "inactive", "UnitFileState": ""}


@pytest.mark.parametrize(
    ("seen", "newer", "restart", "check_mode", "expected"),
    [
        ({}, [], False, False, []),
        ({"UnitFileState": "static"}, [], False, False, []),
        ({"UnitFileState": "disabled"}, [], False, False, ["Enable x.service"]),
        ({"ActiveState": "failed"}, ["/etc/x"], False, False, ["Start x.service"]),
        ({"ActiveState": "activating", "SubState": "auto-restart"}, ["/etc/x"], True, False, []),
        ({"ActiveState": "failed", "SubState": "failed-before-auto-restart"}, ["/etc/x"], True, False, []),
        ({"NeedDaemonReload": "yes"}, [], False, False, ["Reload the units of systemd"]),
        ({}, ["/etc/x"], False, False, ["Restart x.service: /etc/x changed after it started"]),
        ({}, [], True, True, ["Restart x.service"]),
        (ABSENT, [], False, True, ["Enable x.service", "Start x.service"]),
    ],
)
def test_plan(seen: dict[str, str], newer: list[str], restart: bool, check_mode: bool, expected: list[str]) -> None:
    service = Service("x.service", newer_than=["/etc/x"], restart=restart)
    plan = make_plan(service, RUNNING | seen, check_mode=check_mode, newer=lambda paths, started: newer)
    assert [step.what for step in plan.steps] == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, ["Stop x.service", "Disable x.service"]),
        ({"ActiveState": "inactive"}, ["Disable x.service"]),
        ({"ActiveState": "activating", "UnitFileState": "static"}, ["Stop x.service"]),
        ({"ActiveState": "failed", "UnitFileState": "disabled"}, ["Reset the failed state of x.service"]),
        (ABSENT | {"ActiveState": "failed"}, ["Reset the failed state of x.service"]),
        ({"LoadState": "masked", "ActiveState": "inactive", "UnitFileState": "masked"}, []),
        (ABSENT, []),
    ],
)
def test_stopped(seen: dict[str, str], expected: list[str]) -> None:
    plan = make_plan(Service("x.service", state="stopped"), RUNNING | seen, check_mode=False)
    assert [step.what for step in plan.steps] == expected


def test_what_was_stopped_at_its_work_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Sequence[str]] = []
    monkeypatch.setattr(units, "run", lambda argv, **_: called.append(argv))
    make_plan(Service("x.service", state="stopped"), RUNNING, check_mode=False).execute()
    assert [words[1] for words in called] == ["stop", "reset-failed", "disable"]


def test_a_timer_has_no_process_and_is_as_old_as_its_start() -> None:
    seen: list[float] = []

    def record(paths: Sequence[str], started: float) -> list[str]:
        seen.append(started)
        return []

    timer = {"ExecMainStartTimestampMonotonic": "", "ActiveEnterTimestampMonotonic": "7000000"}
    make_plan(Service("x.timer"), RUNNING | timer, check_mode=False, newer=record)
    assert seen == [7.0]


@pytest.mark.parametrize(("state", "message"), [("masked", "is masked"), ("not-found", "does not exist")])
def test_units_that_cannot_run_are_refused(state: str, message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        make_plan(Service("x.service"), RUNNING | {"LoadState": state}, check_mode=False)


def test_a_check_run_shows_a_masked_unit_and_nothing_else_of_it() -> None:
    masked = RUNNING | {"LoadState": "masked", "ActiveState": "inactive", "NeedDaemonReload": "yes"}
    plan = make_plan(Service("x.service"), masked, check_mode=True)
    assert [step.what for step in plan.steps] == [
        "For an operator: x.service masked: masked; it should be: not masked."
    ]


def test_the_units_own_files_are_looked_at() -> None:
    looked_at: list[str] = []

    def record(paths: list[str], started: float) -> list[str]:
        looked_at.extend(paths)
        assert started == 5.0
        return []

    make_plan(Service("x.service", ["/etc/x"]), RUNNING | {"DropInPaths": "/a /b"}, check_mode=False, newer=record)
    assert looked_at == ["/etc/x", "/usr/lib/systemd/system/x.service", "/a", "/b"]


def test_newer_is_after_the_start_whatever_the_modification_time_says(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.touch()
    os.utime(path, (0, 0))
    assert newer_paths([f"{tmp_path}/*.toml", f"{tmp_path}/missing"], time.monotonic() - 60) == [str(path)]
    assert newer_paths([str(path)], time.monotonic() + 60) == []


def test_a_probe_that_never_succeeds_ends_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_journal", lambda service: "\njournal")
    with pytest.raises(WaitError, match=r"(?s)x\.service to answer.*false ended with status 1.*journal"):
        wait_ready(Service("x.service", ready=["false"], ready_timeout=0.1))
    with pytest.raises(WaitError) as caught:
        wait_ready(Service("x.service", ready=["false"], ready_timeout=0.1, ready_remedy="Set base_ntp_servers."))
    assert str(caught.value).endswith("journal Set base_ntp_servers.")
    wait_ready(Service("x.service", ready=["true"]))
