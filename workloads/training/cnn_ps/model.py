"""Two convolutions and two dense layers, on plain variables."""

from __future__ import annotations

import tensorflow as tf

from engine.loop.initializers import he_normal
from training.cnn_ps.data import CLASSES, SIDE

_KERNEL = 3
_CHANNELS = (32, 64)
_FLAT = 5 * 5 * _CHANNELS[1]
"""28 x 28 -> 26 -> 13 -> 11 -> 5: each convolution removes the border, each pooling halves the size."""


class ConvNet(tf.Module):
    """Twice convolution (ReLU) and pooling, then a dense layer (ReLU) and 10 logits.

    With 500 units it has 824,326 parameters, 800,500 of them in the dense layer, whose kernel is split over the
    parameter servers.

    :param dense_units: width of the dense layer.
    :param seed: makes the initial values the same in every run.
    """

    def __init__(self, dense_units: int, seed: int) -> None:
        super().__init__(name="conv_net")
        first, second = _CHANNELS
        self.conv1_kernel = he_normal("conv1_kernel", [_KERNEL, _KERNEL, 1, first], seed)
        self.conv1_bias = tf.Variable(tf.zeros([first]), name="conv1_bias")
        self.conv2_kernel = he_normal("conv2_kernel", [_KERNEL, _KERNEL, first, second], seed + 1)
        self.conv2_bias = tf.Variable(tf.zeros([second]), name="conv2_bias")
        self.dense_kernel = he_normal("dense_kernel", [_FLAT, dense_units], seed + 2)
        self.dense_bias = tf.Variable(tf.zeros([dense_units]), name="dense_bias")
        self.output_kernel = he_normal("output_kernel", [dense_units, CLASSES], seed + 3)
        self.output_bias = tf.Variable(tf.zeros([CLASSES]), name="output_bias")

    def parameters(self) -> list[tf.Variable]:
        return [
            *(self.conv1_kernel, self.conv1_bias, self.conv2_kernel, self.conv2_bias),
            *(self.dense_kernel, self.dense_bias, self.output_kernel, self.output_bias),
        ]

    def logits(self, images: tf.Tensor) -> tf.Tensor:
        """Return unnormalised class scores, float32 [n, 10].

        :param images: uint8 [n, 784], 0 to 255.
        """
        pixels = tf.cast(tf.reshape(images, [-1, SIDE, SIDE, 1]), tf.float32) / 255.0
        hidden = _convolve(pixels, self.conv1_kernel, self.conv1_bias)
        hidden = _convolve(hidden, self.conv2_kernel, self.conv2_bias)
        hidden = tf.reshape(hidden, [-1, _FLAT])
        hidden = tf.nn.relu(tf.matmul(hidden, self.dense_kernel) + self.dense_bias)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @tf.function(input_signature=[tf.TensorSpec([None, SIDE * SIDE], tf.uint8, name="images")])
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


def _convolve(images: tf.Tensor, kernel: tf.Variable, bias: tf.Variable) -> tf.Tensor:
    """Apply a convolution without padding, ReLU, and the maximum of every 2 x 2 pixels.

    The maximum is taken first: bias and ReLU do not change which pixel it is, and then need a quarter of the work.
    """
    largest = tf.nn.max_pool2d(tf.nn.conv2d(images, kernel, strides=1, padding="VALID"), 2, 2, "VALID")
    return tf.nn.relu(largest + bias)


def _cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int32), logits=logits)
