"""A follower names the last event that it did not understand."""

from __future__ import annotations

from pathlib import Path

from tests.unit.training.samples import training
from tests.unit.training.test_follow import ENDS, STARTS, follow
from trainyard.core.errors import TrainyardError


def test_the_last_refused_event_is_named_and_recorded(tmp_path: Path) -> None:
    judged = training(logs={"claim": "training"}, success={"metric": "accuracy", "at_least": 0.9}, flags={})
    wrong = {"event": "evaluate", "accuracy": "very good"}
    script = [*STARTS, (12, "say", "chief-0", wrong), *ENDS[1:]]
    error, cluster, _ = follow(tmp_path, script, judged)
    assert isinstance(error, TrainyardError)
    assert "accuracy is unknown, but at least 0.9 is required. The last event that was not understood:" in str(error)
    assert "accuracy is 'very good', not a number" in str(error)
    assert cluster.record["refused_event"] == "accuracy is 'very good', not a number"
