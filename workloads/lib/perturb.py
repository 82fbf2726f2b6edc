"""Recordings changed by chance, a little and each time in another way, so that a training learns what is said and not
who says it."""

from __future__ import annotations

import math

import tensorflow as tf

from lib.log_mel import BANDS

WARP = 1.25
"""Most by which a voice's frequencies are raised or lowered, as by another length of the vocal tract (Jaitly, Hinton
2013, "Vocal Tract Length Perturbation (VTLP) improves speech recognition")."""
HIDDEN_BANDS, HIDDEN_FRAMES = 6, 8
"""Most that is hidden at once (Park et al. 2019, "SpecAugment", https://arxiv.org/abs/1904.08779)."""


def perturbed(features: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Features of which each recording is warped, and has some bands and two pieces hidden.

    :param features: float32 [n, frames, BANDS].
    :param seed: int64 [2]; the same changes for the same seed.
    """
    count, frames = tf.unstack(tf.shape(features)[:2])
    most = math.log(WARP)
    warp = tf.exp(tf.random.stateless_uniform([count, 1], seed, -most, most))
    found = warped(features, warp)
    hidden = _some(seed + 1, count, BANDS, HIDDEN_BANDS)[:, tf.newaxis, :]
    for number in (2, 3):
        hidden |= _some(seed + number, count, frames, HIDDEN_FRAMES)[:, :, tf.newaxis]
    return tf.where(hidden, 0.0, found)


def warped(features: tf.Tensor, warp: tf.Tensor) -> tf.Tensor:
    """Features whose band b is what was at band warp times b, between two bands in proportion.

    :param warp: float32 [n, 1].
    """
    places = tf.minimum(tf.range(BANDS, dtype=tf.float32) * warp, BANDS - 1.0)
    lower = tf.floor(places)
    part = (places - lower)[:, tf.newaxis, :]
    low = tf.cast(lower, tf.int32)
    high = tf.minimum(low + 1, BANDS - 1)
    one, other = (tf.gather(features, each, axis=2, batch_dims=1) for each in (low, high))
    return one + part * (other - one)


def _some(seed: tf.Tensor, count: tf.Tensor, size: tf.Tensor | int, most: int) -> tf.Tensor:
    """Up to `most` places in a row of `size` places, bool [count, size]."""
    width = tf.random.stateless_uniform([count, 1], seed, 0, most + 1, tf.int32)
    first = tf.random.stateless_uniform([count, 1], seed + 100, 0, size, tf.int32)
    places = tf.range(size)
    return (places >= first) & (places < first + width)
