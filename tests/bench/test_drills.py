"""What a drill makes of the events of the chiefs."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from drills import longest_pause, lost

STEPS = [
    {"step": step, "time": time} for step, time in ((20, 1.0), (40, 2.0), (60, 3.0), (40, 11.0), (60, 12.0), (80, 13.0))
]


def test_the_longest_pause_ends_with_a_step_that_was_never_done_before() -> None:
    assert longest_pause(STEPS, 2.5) == 10.0
    assert longest_pause(STEPS, 5.0) == 8.0
    assert longest_pause(STEPS[:3], 0.5) == 1.0


def test_lost_steps_are_those_between_the_checkpoint_and_what_had_been_reported() -> None:
    assert lost(STEPS, {"step": 30, "time": 10.0}) == 30
    assert lost(STEPS, {"step": 60, "time": 10.0}) == 0
