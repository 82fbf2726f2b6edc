"""The order of the training examples."""

from __future__ import annotations

import tensorflow as tf


def example_numbers(step: tf.Tensor, batch_size: int, count: int, seed: int) -> tf.Tensor:
    """Return the numbers of the examples of one global step, int64 [batch_size].

    Every epoch is a permutation of the training set that depends on seed and epoch only. The examples of a step
    therefore depend neither on the worker nor on restarts and repetitions. An epoch ends with the last complete batch.

    :param step: global step counted from 0, int64 scalar.
    :param count: size of the training set, at least `batch_size`.
    """
    steps_per_epoch = count // batch_size
    epoch = step // steps_per_epoch
    positions = (step % steps_per_epoch) * batch_size + tf.range(batch_size, dtype=tf.int64)
    return tf.random.experimental.index_shuffle(
        positions, seed=tf.stack([tf.constant(seed, tf.int64), epoch]), max_index=tf.constant(count - 1, tf.int64)
    )
