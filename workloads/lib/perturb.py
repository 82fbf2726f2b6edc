"""Random small changes of recordings, different each time, so that a training learns the speech and not the speaker."""

from __future__ import annotations

import math

import tensorflow as tf

from lib.log_mel import BANDS

WARP = 1.25
"""Maximum factor by which a voice's frequencies are raised or lowered, as by another length of the vocal tract (Jaitly,
Hinton 2013, "Vocal Tract Length Perturbation (VTLP) improves speech recognition")."""
HIDDEN_BANDS, HIDDEN_FRAMES = 6, 8
"""Maximum size of a masked piece (Park et al. 2019, "SpecAugment", https://arxiv.org/abs/1904.08779)."""


def perturbed(features: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Return features with each recording warped, and with some bands and two pieces masked.

    :param features: float32 [n, frames, BANDS].
    :param seed: int64 [2]; the same seed gives the same changes.
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
    """Return features whose band b has the content of band warp times b, interpolated between two bands.

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
    """Return a mask of up to `most` consecutive places out of `size`, bool [count, size]."""
    width = tf.random.stateless_uniform([count, 1], seed, 0, most + 1, tf.int32)
    first = tf.random.stateless_uniform([count, 1], seed + 100, 0, size, tf.int32)
    places = tf.range(size)
    return (places >= first) & (places < first + width)
