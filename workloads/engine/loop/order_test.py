"""Tests of the order of the examples."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
order = pytest.importorskip("engine.loop.step")


def epoch(number, seed=1, count=64, batch=10):
    steps = count // batch
    return np.concatenate(
        [order.example_numbers(tf.constant(number * steps + i, tf.int64), batch, count, seed) for i in range(steps)]
    )


def test_an_epoch_shows_every_example_at_most_once_in_its_own_order():
    first, second = epoch(0), epoch(1)
    for numbers in (first, second):
        assert len(set(numbers.tolist())) == 60 and numbers.min() >= 0 and numbers.max() <= 63
    assert first.tolist() != second.tolist() != epoch(1, seed=2).tolist()
    assert first.tolist() == epoch(0).tolist()
