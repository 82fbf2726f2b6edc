"""One hidden layer, as in the classic distributed MNIST example, on plain variables."""

from __future__ import annotations

import tensorflow as tf

from engine.loop.initializers import he_normal
from training.mnist_ps.data import CLASSES, PIXELS


class Classifier(tf.Module):
    """784 pixels -> hidden units (ReLU) -> 10 logits; 79,510 parameters with 100 hidden units.

    :param hidden_units: width of the hidden layer.
    :param seed: makes the initial values the same in every run.
    """

    def __init__(self, hidden_units: int, seed: int) -> None:
        super().__init__(name="classifier")
        self.hidden_kernel = he_normal("hidden_kernel", [PIXELS, hidden_units], seed)
        self.hidden_bias = tf.Variable(tf.zeros([hidden_units]), name="hidden_bias")
        self.output_kernel = he_normal("output_kernel", [hidden_units, CLASSES], seed + 1)
        self.output_bias = tf.Variable(tf.zeros([CLASSES]), name="output_bias")

    def parameters(self) -> list[tf.Variable]:
        return [self.hidden_kernel, self.hidden_bias, self.output_kernel, self.output_bias]

    def logits(self, images: tf.Tensor) -> tf.Tensor:
        """Return unnormalised class scores, float32 [n, 10].

        :param images: uint8 [n, 784], 0 to 255.
        """
        pixels = tf.cast(images, tf.float32) / 255.0
        hidden = tf.nn.relu(tf.matmul(pixels, self.hidden_kernel) + self.hidden_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @tf.function(input_signature=[tf.TensorSpec([None, PIXELS], tf.uint8, name="images")])
    def serve(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the probability of each class, float32 [n, 10]."""
        return {"probabilities": tf.nn.softmax(self.logits(images))}

    def loss(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Return the mean cross entropy in nats, float32 scalar.

        :param labels: uint8 [n], 0 to 9.
        """
        return tf.reduce_mean(_cross_entropy(self.logits(images), labels))

    def judge(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return which images are recognised, bool [n], and the cross entropy of each in nats, float32 [n]."""
        logits = self.logits(images)
        return tf.argmax(logits, axis=1) == tf.cast(labels, tf.int64), _cross_entropy(logits, labels)


def _cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int32), logits=logits)
