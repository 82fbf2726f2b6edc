"""Tests of times and quantities in the console's measures."""

from __future__ import annotations

import console_measures
import console_memory
import pytest
from timed import BenchError


@pytest.mark.parametrize(
    ("steps", "drawn", "since", "expected"),
    [
        ([(20, 10.0), (40, 11.0)], [(20, 10.2), (40, 11.5)], 0.0, [0.2, 0.5]),
        # Two lines between two frames are drawn by the second frame.
        ([(20, 10.0), (40, 10.1)], [(40, 10.4)], 0.0, [0.4, 0.3]),
        # The page was opened with the first line.
        ([(20, 10.0), (40, 11.0)], [(20, 10.9), (40, 11.1)], 10.5, [0.1]),
        # The page was opened with the curve of the previous attempt.
        ([(20, 10.0), (40, 11.0)], [(2000, 9.0), (20, 10.5), (40, 11.25)], 0.0, [0.5, 0.25]),
    ],
)
def test_delays(
    steps: list[tuple[int, float]], drawn: list[tuple[int, float]], since: float, expected: list[float]
) -> None:
    assert console_measures.delays(steps, drawn, since) == pytest.approx(expected)


def test_a_line_that_is_never_drawn_is_no_delay() -> None:
    with pytest.raises(BenchError, match="Step 60 was never drawn"):
        console_measures.delays([(20, 10.0), (60, 11.0)], [(20, 10.5)], 0.0)


@pytest.mark.parametrize(("quantity", "expected"), [("91Ki", 93184), ("2Mi", 2097152), ("1Gi", 2**30), ("17", 17)])
def test_quantities_of_memory(quantity: str, expected: float) -> None:
    assert console_memory.in_bytes(quantity) == expected


def test_a_quantity_that_is_not_known_is_an_error() -> None:
    with pytest.raises(BenchError, match="not a supported quantity of memory"):
        console_memory.in_bytes("1e3")
