"""Tests of random changes: reproducible by the seed, and within their limits."""

from __future__ import annotations

import numpy as np
import pytest

from speech import signals

tf = pytest.importorskip("tensorflow")

FEATURES = np.random.default_rng(0).normal(size=[4, 50, signals.BANDS]).astype(np.float32) + 10


def changed(seed):
    return signals.perturbed(tf.constant(FEATURES), tf.constant(seed, tf.int64)).numpy()


def test_a_seed_says_what_is_changed():
    assert (changed([1, 7]) == changed([1, 7])).all()
    assert (changed([1, 7]) != changed([1, 8])).any(axis=(1, 2)).all()


def test_little_is_hidden():
    for step in range(20):
        hidden = changed([1, step]) == 0
        assert hidden.all(axis=1).sum(axis=1).max() <= signals.HIDDEN_BANDS
        assert hidden.all(axis=2).sum(axis=1).max() <= 2 * signals.HIDDEN_FRAMES
    assert any((changed([1, step]) == 0).any() for step in range(3))


def test_a_warp_moves_what_was_in_a_band():
    picture = np.zeros([2, 1, signals.BANDS], np.float32)
    picture[:, 0, 20] = 1
    found = signals.warped(picture, np.float32([[1.0], [1.25]])).numpy()
    assert (found[0] == picture[0]).all()
    assert found[1, 0, 16] == 1 and found[1, 0, [15, 17]] == pytest.approx([0, 0], abs=0.3)
