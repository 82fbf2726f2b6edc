"""The limits of a run as a script of looks: seconds, whether all pods run, restarts, step."""

from __future__ import annotations

import pytest

from trainyard.trainings.follow import Bounds

Look = tuple[float, bool, int, int | None]


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ([(0, False, 0, None), (99, False, 0, None)], ""),
        ([(0, False, 0, None), (101, False, 0, None)], "start_timeout, 100 s"),
        ([(0, True, 0, None), (900, True, 0, None)], ""),
        # After a restart the pods get their time again, and no more than that.
        ([(0, True, 0, 20), (500, False, 1, 20), (590, False, 1, 20)], ""),
        ([(0, True, 0, 20), (500, False, 1, 20), (601, False, 1, 20)], "start_timeout"),
        ([(0, False, 0, None), (90, False, 1, None), (180, False, 1, None)], ""),
        # A worker that finds no place, while the others make steps.
        ([(0, True, 0, 20), (10, False, 0, 40), (105, False, 0, 60), (201, False, 0, 80)], ""),
        ([(0, True, 0, 20), (10, False, 0, 40), (111, False, 0, 40)], "start_timeout"),
        # Before the chief has said anything.
        ([(0, False, 0, None), (50, True, 0, None), (60, False, 0, None), (150, False, 0, None)], ""),
        ([(0, True, 0, 20), (1001, True, 0, 40)], "total_timeout, 1000 s"),
    ],
)
def test_bounds(looks: list[Look], said: str) -> None:
    bounds = Bounds(100, 1000, 0.0)
    answers = [
        bounds.broken(now, all_run=all_run, restarts=restarts, step=step) for now, all_run, restarts, step in looks
    ]
    assert answers[:-1] == [""] * (len(looks) - 1)
    assert said in answers[-1]
    assert bool(answers[-1]) == bool(said)


def test_a_run_that_is_taken_over_has_used_up_some_of_its_time() -> None:
    assert "total_timeout" in Bounds(100, 1000, 0.0, age=990.0).broken(11.0, all_run=True, restarts=0, step=20)


def test_the_pull_of_an_image_does_not_count() -> None:
    bounds = Bounds(100, 0, 0.0)
    for now in (0.0, 90.0, 400.0):
        assert bounds.broken(now, all_run=False, restarts=0, step=None, pulls=True) == ""
    assert bounds.broken(499.0, all_run=False, restarts=0, step=None) == ""
    assert "start_timeout" in bounds.broken(501.0, all_run=False, restarts=0, step=None)


def test_no_limit_in_all() -> None:
    assert Bounds(100, 0, 0.0).broken(1e6, all_run=True, restarts=0, step=None) == ""
