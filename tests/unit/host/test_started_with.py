"""systemd_unit on a host whose clock is set: what a unit was started with decides; without a record, times do."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.host import started_with, units
from trainyard.host.units import Service, make_plan
from trainyard.kubeadm import kubelet_files

TWO_HOURS = 7200.0


class Machine:
    """systemd with one unit, and a clock that can be set."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.configuration = folder / "config.toml"
        self.configuration.write_text("a\n")
        self.service = Service("containerd.service", newer_than=[str(folder / "*.toml")])
        self.starts = 0
        self.started = 0.0
        self.restart_by_hand()
        real = time.time
        self.ahead = 0.0
        monkeypatch.setattr(units.time, "time", lambda: real() + self.ahead)
        monkeypatch.setattr(units, "run", self._run)
        monkeypatch.setattr(kubelet_files, "properties_of", lambda *_: self.seen())
        monkeypatch.setattr(started_with, "FOLDER", str(folder / "run"))

    def _run(self, argv: Sequence[str], **_: object) -> SimpleNamespace:
        if argv[1] == "restart":
            self.restart_by_hand()
        return SimpleNamespace(stdout="".join(f"{key}={value}\n" for key, value in self.seen().items()))

    def restart_by_hand(self) -> None:
        time.sleep(0.02)
        self.starts += 1
        self.started = time.monotonic()
        time.sleep(0.02)

    def seen(self) -> dict[str, str]:
        return {
            "LoadState": "loaded",
            "ActiveState": "active",
            "SubState": "running",
            "UnitFileState": "enabled",
            "ExecMainStartTimestampMonotonic": str(int(self.started * 1e6)),
            "InvocationID": f"{self.starts:032x}",
        }

    def run(self) -> list[str]:
        """One run of the module; what it did."""
        plan = make_plan(self.service, units.observe(self.service), check_mode=False)
        plan.execute()
        return plan.done

    def write(self, text: str) -> None:
        time.sleep(0.02)
        self.configuration.write_text(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def restarted(machine: Machine) -> list[str]:
    return [f"Restart containerd.service: {machine.configuration} changed after it started"]


@pytest.mark.parametrize("back", [-1.0, -30.0, -TWO_HOURS, TWO_HOURS])
def test_after_the_clock_was_set_one_restart_is_enough(machine: Machine, back: float) -> None:
    machine.write("b\n")
    assert machine.run() == restarted(machine)
    machine.ahead = back
    assert [machine.run() for _ in range(3)] == [[], [], []]
    # Each change counts, on whichever side of the present its time lies.
    machine.write("c\n")
    assert [machine.run() for _ in range(2)] == [restarted(machine), []]


def test_nobodys_start_is_restarted_once_at_most(machine: Machine) -> None:
    machine.ahead = -TWO_HOURS
    assert sum(bool(machine.run()) for _ in range(3)) == 0
    machine.ahead = -30.0
    assert sum(bool(machine.run()) for _ in range(3)) <= 1


def test_an_existing_host_without_records_restarts_nothing(machine: Machine) -> None:
    assert machine.run() == []
    assert not Path(started_with.FOLDER).exists()


def test_a_restart_by_hand_is_judged_by_times(machine: Machine) -> None:
    machine.write("b\n")
    machine.run()
    machine.write("c\n")
    machine.restart_by_hand()
    assert machine.run() == []
    machine.write("d\n")
    assert machine.run() == restarted(machine)


def test_what_was_written_again_with_the_same_text_is_no_change(machine: Machine) -> None:
    machine.write("b\n")
    machine.run()
    machine.write("b\n")
    os.utime(machine.configuration, (0, 0))
    assert machine.run() == []


def test_a_new_file_counts_as_well(machine: Machine) -> None:
    machine.write("b\n")
    machine.run()
    time.sleep(0.02)
    machine.configuration.with_name("more.toml").write_text("x\n")
    assert len(machine.run()) == 1
    assert machine.run() == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"invocation": "ID", "files": {"/x": 3}}', "\x00\xff"])
def test_a_record_that_cannot_be_read_is_none(machine: Machine, text: str) -> None:
    path = Path(started_with.FOLDER) / "containerd.service.json"
    path.parent.mkdir()
    path.write_text(text.replace("ID", machine.seen()["InvocationID"]))
    assert machine.run() == []
    machine.write("b\n")
    assert machine.run() == restarted(machine)


def test_where_nothing_can_be_recorded_the_unit_starts_all_the_same(machine: Machine) -> None:
    Path(started_with.FOLDER).write_text("in the way")
    machine.write("b\n")
    assert machine.run() == restarted(machine)
    assert machine.run() == []


def test_a_folder_changes_with_its_names(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    machine.service = Service("containerd.service", newer_than=[str(folder)])
    machine.run()
    machine.ahead = -TWO_HOURS
    assert machine.run() == []
    (folder / "x.toml").touch()
    assert len(machine.run()) == 1


def test_the_kubelets_configuration_is_judged_alike(machine: Machine) -> None:
    path = str(machine.configuration)
    machine.write("b\n")
    assert kubelet_files.is_stale(path)
    units.start(kubelet_files.UNIT, "restart", [path], 10.0)
    machine.ahead = -TWO_HOURS
    assert not kubelet_files.is_stale(path)
    os.chmod(path, 0o600)
    assert not kubelet_files.is_stale(path)
    machine.write("c\n")
    assert kubelet_files.is_stale(path)
