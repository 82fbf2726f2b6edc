"""What has to be done for a run, by what is on record of it and what there is."""

from __future__ import annotations

import pytest

from trainyard.trainings.run import decide


@pytest.mark.parametrize(
    ("recorded", "live", "ended", "endless", "expected"),
    [
        (None, None, None, False, "submit"),
        ("new", None, None, False, "keep"),
        ("new", "new", "Completed", False, "keep"),
        ("old", "old", "Completed", False, "submit"),
        ("old", "new", None, False, "adopt"),
        (None, "new", None, False, "adopt"),
        (None, "new", "Completed", False, "adopt"),
        (None, "new", "Failed", False, "submit"),
        (None, "old", "Failed", False, "submit"),
        # Goes on with another description.
        (None, "old", None, False, "leave"),
        ("new", "old", None, False, "leave"),
        (None, "new", None, True, "keep"),
        (None, "old", None, True, "leave"),
    ],
)
def test_decide(recorded: str | None, live: str | None, ended: str | None, endless: bool, expected: str) -> None:
    assert decide("new", recorded, live, ended=ended, endless=endless) == expected


def test_a_run_that_goes_on_is_ended_only_when_that_is_said() -> None:
    assert decide("new", None, "old", ended=None, endless=False, replace=True) == "submit"
    assert decide("new", None, "new", ended=None, endless=False, replace=True) == "adopt"


@pytest.mark.parametrize(("live", "ended"), [(None, None), ("new", "Completed")])
def test_a_run_that_left_a_question_open_is_not_trained_again(live: str | None, ended: str | None) -> None:
    assert decide("new", "new", live, ended=ended, endless=False, proven=False) == "probe"
