"""Being told to stop: nothing is begun after it, and the signals do afterwards what they did before."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.sites import Stopped
from tests.unit.reprovision.test_repair import DRIFT, LOOK, run
from tests.unit.reprovision.worlds import World
from trainyard.drift import node_state, stopping
from trainyard.drift.report_store import Store


def test_the_first_signal_is_noted_and_a_second_does_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with stopping.listening():
            assert not stopping.requested()
            signal.raise_signal(signal.SIGTERM)
            assert stopping.requested() and heard == []
            signal.raise_signal(signal.SIGTERM)
            assert heard == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert len(heard) == 2
        assert not stopping.requested()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("during", "calls", "status", "done"),
    [
        (LOOK, [LOOK], 2, ["", "", ""]),
        ("run worker1 hosts alone", [LOOK, "run worker1 hosts alone"], 5,
         ["", "failed: it received a stop signal", ""]),
        ("check worker1 hosts alone", [LOOK, "run worker1 hosts alone", "check worker1 hosts alone"], 2,
         ["", "repaired", ""]),
    ],
)  # fmt: skip
def test_a_converge_that_is_told_to_stop(
    tmp_path: Path, during: str, calls: list[str], status: int, done: list[str]
) -> None:
    class LastNotice(World):
        def __call__(self, playbook: str, **options: Any) -> Any:
            played = super().__call__(playbook, **options)
            if self.calls[-1] == during:
                os.kill(os.getpid(), signal.SIGTERM)
            # As ansible-runner ends the play that is at work, unless it has ended by itself.
            return played

    world = LastNotice(DRIFT)
    with stopping.listening():
        found = run(Store(tmp_path / "state"), world, clock=Stopped())
    assert world.calls == calls
    assert (found["exit_status"], [each["done"] for each in found["items"]]) == (status, done), found["headline"]
    assert "it received a stop signal" in found["headline"]


def test_a_wait_for_a_node_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Stopped()
    monkeypatch.setattr(node_state, "why_not_ready", lambda *_: "the node w1 is not Ready")
    with stopping.listening():
        signal.raise_signal(signal.SIGINT)
        said = node_state.wait_for_node(lambda: None, "w1", ["kube-system"], clock)  # type: ignore[arg-type, return-value]
    assert said == "it received a stop signal: the node w1 is not Ready" and clock.now == Stopped.now
