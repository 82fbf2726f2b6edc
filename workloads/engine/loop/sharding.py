"""Split large variables, so that every parameter server holds and computes its share of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import tensorflow as tf

MIN_PIECE_BYTES = 256 * 1024
"""A smaller piece costs more as a separate message than it saves; as in TensorFlow's guide
(https://www.tensorflow.org/tutorials/distribute/parameter_server_training, "Variable sharding")."""

Sharded = tf.__internal__.distribute.ShardedVariable
"""TensorFlow's type of variables made by a partitioner; Keras uses the same name."""


def partitioner(servers: int) -> tf.distribute.experimental.partitioners.Partitioner:
    """Return a partitioner that splits large variables along their first dimension, over at most `servers` pieces."""
    return tf.distribute.experimental.partitioners.MinSizePartitioner(MIN_PIECE_BYTES, max_shards=servers)


def pieces(variables: Iterable[tf.Variable]) -> list[tf.Variable]:
    """Return the variables in order, with each split variable replaced by its pieces."""
    return [piece for each in variables for piece in (each.variables if isinstance(each, Sharded) else [each])]


def bytes_held(variables: Iterable[tf.Variable]) -> dict[str, int]:
    """Return the bytes of the variables on each task, by its name (`ps 0`)."""
    held: Counter[str] = Counter()
    for piece in pieces(variables):
        device = tf.DeviceSpec.from_string(piece.device)
        held[f"{device.job} {device.task}"] += piece.shape.num_elements() * piece.dtype.size
    return dict(held)


def joined(parts: Sequence[tf.Variable]) -> tf.Variable:
    """Return one variable made of the parts, along the first dimension.

    A checkpoint holds it whole, so that it can be restored into another number of pieces.
    """
    return parts[0] if len(parts) == 1 else Sharded(parts)
