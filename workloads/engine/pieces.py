"""Large variables in pieces, so that every parameter server holds its share of them and of the work on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import tensorflow as tf

MIN_PIECE_BYTES = 256 * 1024
"""A smaller piece costs more as a message of its own than it brings by being elsewhere; as in TensorFlow's guide
(https://www.tensorflow.org/tutorials/distribute/parameter_server_training, "Variable sharding")."""

Sharded = tf.__internal__.distribute.ShardedVariable
"""TensorFlow's name for the type that a partitioner makes; Keras uses it by the same name."""


def partitioner(servers: int) -> tf.distribute.experimental.partitioners.Partitioner:
    """Splits every variable that is large enough along its first dimension, over as many parameter servers."""
    return tf.distribute.experimental.partitioners.MinSizePartitioner(MIN_PIECE_BYTES, max_shards=servers)


def pieces(variables: Iterable[tf.Variable]) -> list[tf.Variable]:
    """The variables in order, each one that is in pieces replaced by these."""
    return [piece for each in variables for piece in (each.variables if isinstance(each, Sharded) else [each])]


def bytes_held(variables: Iterable[tf.Variable]) -> dict[str, int]:
    """How many bytes of the variables each task holds, by its name (`ps 0`)."""
    held: Counter[str] = Counter()
    for piece in pieces(variables):
        device = tf.DeviceSpec.from_string(piece.device)
        held[f"{device.job} {device.task}"] += piece.shape.num_elements() * piece.dtype.size
    return dict(held)


def joined(parts: Sequence[tf.Variable]) -> tf.Variable:
    """One variable of the parts, along the first dimension. A checkpoint holds it whole, so that it can be restored
    into another number of pieces."""
    return parts[0] if len(parts) == 1 else Sharded(parts)
