"""The work of one call to a worker: several training steps, each counted exactly once.

The order of the training examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from engine.loop.optimizer import Adam
from engine.loop.sharding import pieces
from engine.workload import Model, Workload


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


TrainCall = Callable[[Iterator[Any], tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


class Counters(tf.Module):
    """Counters on the parameter servers.

    :param lanes: number of calls that may be pending at once.

    `global_step` counts applied steps. `next_step[lane]` is the step after the last one applied by the call in that
    lane: a call that the coordinator repeats on another worker continues there instead of at its beginning.
    """

    def __init__(self, lanes: int) -> None:
        super().__init__(name="counters")
        self.global_step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
        self.next_step = tf.Variable(tf.zeros([lanes], tf.int64), trainable=False, name="next_step")


def make_train_call(workload: Workload, model: Model, adam: Adam, counters: Counters) -> TrainCall:
    """Build the function that runs on workers.

    :param model: model whose parameters Adam updates.
    :returns: `train_call(source, lane, first, count)`: does the global steps first ... first + count - 1 (int64
        scalars) that are not yet done, and returns the sum of their losses and their number.
    """
    config, data = workload.config, workload.data
    parameters = pieces(model.parameters())

    def numbers(step: tf.Tensor) -> tf.Tensor:
        return example_numbers(step, config.batch_size, data.count, config.seed)

    def one_step(batch: tuple[tf.Tensor, ...], step: tf.Tensor, lane: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = model.loss(*batch)
        updates = adam.apply(tape.gradient(loss, parameters), step + 1)
        # A step is counted after it was applied, and marked done after it was counted. A worker that dies in between
        # repeats the step, and the counter shows it.
        with tf.control_dependencies(updates):
            counted = counters.global_step.assign_add(1, read_value=False)
        with tf.control_dependencies([counted]):
            # The mark never decreases: a worker that hung may finish a step long after another one has done the call.
            counters.next_step.scatter_max(tf.IndexedSlices(step + 1, lane))
        return loss

    @tf.function
    def train_call(
        source: Iterator[Any], lane: tf.Tensor, first: tf.Tensor, count: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        element = next(source)
        start = tf.maximum(first, tf.gather(counters.next_step, lane))
        batches = data.batches(element, start, first + count, numbers)
        total = tf.constant(0.0)
        for step in tf.range(start, first + count):
            total += one_step(batches(step), step, lane)
        return total, tf.maximum(first + count - start, 0)

    return train_call
