"""Data sets that fit into the memory of every worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class InMemory:
    """The whole training set in each worker's memory, from which steps pick their examples by number.

    :param count: number of training examples.
    :param load: TensorFlow operations that read the training set, as tensors whose first dimension is `count`. They run
        on the workers, so the graph should hold paths, not data.
    :param load_held_out: reads the held-out set, as arrays of equal first dimension.
    :param files: files that both read, always in the same order.
    """

    count: int
    load: Callable[[], tuple[tf.Tensor, ...]]
    load_held_out: Callable[[], tuple[np.ndarray, ...]]
    files: Sequence[Path]

    def source(self) -> tf.data.Dataset:
        """Return the whole training set, repeated for ever; it is read once."""
        return tf.data.Dataset.from_tensors(0).map(lambda _: self.load()).cache().repeat()

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        return lambda step: tuple(tf.gather(part, numbers(step)) for part in element)

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        yield from in_batches(self.load_held_out(), size)


def in_batches(arrays: Sequence[np.ndarray], size: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield consecutive parts, of at most `size`, of arrays with equal first dimension."""
    for first in range(0, len(arrays[0]), size):
        yield tuple(array[first : first + size] for array in arrays)
