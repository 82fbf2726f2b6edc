"""A second crash with the same error before the first step ends a run; other ends do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.scripted import stamp
from tests.unit.training.test_follow import ENDS, STARTS, follow, step
from trainyard.core.errors import TrainyardError
from trainyard.trainings.crashes import Crashes
from trainyard.trainings.names import INDEX_LABEL, ROLE_LABEL

ERROR = "ModuleNotFoundError: No module named 'pandas'"


def pod(name: str, code: int | None = 1, *, index: str = "0", seconds: float = 9, **more: Any) -> dict[str, Any]:
    """The pod of a worker that has ended after some seconds, or runs."""
    ended = {"exitCode": code, "startedAt": stamp(0), "finishedAt": stamp(seconds)}
    state = {"running": {}} if code is None else {"terminated": ended}
    meta = {"name": name, "labels": {ROLE_LABEL: "worker", INDEX_LABEL: index}, **more.pop("meta", {})}
    return {"metadata": meta, "status": {"containerStatuses": [{"state": state}], **more}}


def judged(*starts: tuple[dict[str, Any], str]) -> str:
    """Return what is found when the pods end one after the other with these last lines."""
    crashes, logs, seen, found = Crashes(), dict[str, str](), [], ""
    for each, line in starts:
        seen.append(each)
        logs[each["metadata"]["name"]] = f"Traceback\n{line}\n"
        found = found or crashes.repeated(seen, logs.__getitem__)
    return found


def test_the_same_error_twice_in_one_place() -> None:
    assert judged((pod("a"), ERROR), (pod("b"), ERROR)) == ERROR
    changing = [f"RuntimeError: step {n} at 0x{n:x}f of 2026-11-21T12:00:0{n}" for n in (1, 2)]
    assert judged((pod("a"), changing[0]), (pod("b"), changing[1])) == changing[1]
    assert judged((pod("a", 137), ""), (pod("b", 137), "")), "killed twice without a word"


@pytest.mark.parametrize(
    ("second", "line"),
    [
        (pod("b"), "ValueError: something else"),
        (pod("b", 2), ERROR),
        # Two workers of one start.
        (pod("b", index="1"), ERROR),
        (pod("b", 0), ERROR),
        (pod("b", None), ERROR),
        # Saved and stopped; a watchdog; a preempted one; one that the restart of the set has deleted.
        (pod("b", 42), ERROR),
        (pod("b", 75), ERROR),
        (pod("b", conditions=[{"type": "DisruptionTarget", "status": "True"}]), ERROR),
        (pod("b", meta={"deletionTimestamp": stamp(8)}), ERROR),
        # It may have made progress that it does not report.
        (pod("b", seconds=900), ERROR),
        (pod("a"), ERROR),
    ],
)
def test_other_ends_do_not_count(second: dict[str, Any], line: str) -> None:
    assert judged((pod("a"), ERROR), (second, line)) == ""


def test_a_lost_peer_is_no_error_of_its_own() -> None:
    lost = "UnavailableError: failed to connect to all addresses"
    assert judged((pod("a"), lost), (pod("b"), lost), (pod("c"), lost)) == ""


def test_a_follower_gives_the_run_up(tmp_path: Path) -> None:
    wrong = {"event": "error", "message": ERROR}
    script = [
        (1, "start"), (5, "say", "chief-0", wrong), (6, "exit", "chief-0", 1), (8, "restart", 1),
        (12, "say", "chief-0", wrong), (13, "exit", "chief-0", 1), (40, "restart", 2), *ENDS[3:],
    ]  # fmt: skip
    error, cluster, _ = follow(tmp_path, script)
    assert isinstance(error, TrainyardError)
    assert "it ended twice with the same error before its first step" in str(error)
    assert cluster.clock.now < 30 and cluster.record["result"] == "failed"


def test_a_run_that_has_made_a_step_is_restarted_as_often_as_it_may(tmp_path: Path) -> None:
    script = [
        *STARTS, (10, "exit", "chief-0", 1), (11, "restart", 1), (15, "exit", "chief-0", 1), (16, "restart", 2),
        (20, "say", "chief-0", step(40)), *ENDS,
    ]  # fmt: skip
    result, _, _ = follow(tmp_path, script)
    assert (result["result"], result["restarts"]) == ("passed", 2)
