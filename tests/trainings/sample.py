"""The smallest workload: for the engine's own tests, and as an example of `engine.workload`."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from engine.config import Config
from engine.data.memory import InMemory
from engine.workload import Workload

CLASSES = 10


class Linear(tf.Module):
    """Scores of ten classes from numbers, by one matrix."""

    def __init__(self, inputs: int) -> None:
        super().__init__(name="linear")
        self.kernel = tf.Variable(tf.zeros([inputs, CLASSES]), name="kernel")
        wanted = tf.TensorSpec([None, inputs], tf.float32, name="inputs")
        self.serve = tf.function(self._probabilities, input_signature=[wanted])

    def parameters(self) -> list[tf.Variable]:
        return [self.kernel]

    def loss(self, inputs: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(self.judge(inputs, labels)[1])

    def _probabilities(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(tf.matmul(inputs, self.kernel))}

    def judge(self, inputs: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        scores = tf.matmul(inputs, self.kernel)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
        return tf.argmax(scores, axis=1, output_type=tf.int32) == labels, losses


def workload(config: Config, inputs: int = 16, examples: int = 64) -> Workload:
    """Return a workload of one-hot examples whose class is the index of the one; both sets have the same examples."""
    labels: np.ndarray = np.arange(examples, dtype=np.int32) % CLASSES
    arrays = (np.eye(inputs, dtype=np.float32)[labels], labels)
    data = InMemory(examples, lambda: tuple(map(tf.constant, arrays)), lambda: arrays, files=())
    return Workload(config, lambda: Linear(inputs), data, {"model": f"linear {inputs}"})
