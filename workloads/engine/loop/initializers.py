"""Initial values of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf


def he_normal(name: str, shape: Sequence[int], seed: int) -> tf.Variable:
    """Return a kernel for a layer with ReLU: Kaiming He et al. 2015, https://arxiv.org/abs/1502.01852, equation 10.

    :param shape: the last dimension is the number of outputs.
    :param seed: the same seed and number of inputs give the same values.
    """
    inputs = math.prod(shape[:-1])
    value = tf.random.stateless_normal(shape, seed=[seed, inputs], stddev=(2.0 / inputs) ** 0.5)
    return tf.Variable(value, name=name)
