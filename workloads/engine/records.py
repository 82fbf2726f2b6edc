"""Data sets that do not fit into memory: records in files, read by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from lib.record_files import RecordSet

_AHEAD = 2
"""Batches that are read and decoded while a step computes."""


@dataclass(frozen=True)
class Records:
    """Examples in shards of TFRecords; a worker reads only those that its steps need.

    :param training: the training set.
    :param held_out_set: the held-out set.
    :param decode: TensorFlow operations that decode one record, string scalar, to an example, a tuple of tensors.
    """

    training: RecordSet
    held_out_set: RecordSet
    decode: Callable[[tf.Tensor], tuple[tf.Tensor, ...]]

    @property
    def count(self) -> int:
        return self.training.count

    @property
    def files(self) -> list[Path]:
        return [file for each in (self.training, self.held_out_set) for file in (each.places, *each.shards)]

    def source(self) -> tf.data.Dataset:
        """Return the positions of all records, repeated for ever; 16 bytes each, read once."""
        return tf.data.Dataset.from_tensors(0).map(lambda _: self.training.table()).cache().repeat()

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        def read(number: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return self.decode(self.training.record(tf.gather(element, number)))

        size = tf.size(numbers(first), out_type=tf.int64)
        of_all_steps = (
            tf.data.Dataset.range(first, end)
            .map(numbers)
            .unbatch()
            .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .batch(size, drop_remainder=True)
            .prefetch(_AHEAD)
        )
        iterator = iter(of_all_steps)
        return lambda _: iterator.get_next()

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        examples = self.held_out_set.in_order().map(self.decode, num_parallel_calls=tf.data.AUTOTUNE)
        yield from examples.batch(size).prefetch(_AHEAD).as_numpy_iterator()
