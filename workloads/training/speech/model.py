"""Convolutions over time, on plain variables, with a score for each letter at every step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from speech import ctc, signals

from engine.loop.initializers import he_normal

_STACKED = 3
"""Frames of 10 ms per step."""
_FIRST_WIDTH, _WIDTH, _BLOCKS = 5, 9, 4


def steps_of(frames: Any) -> Any:
    """Return the number of steps of this many frames."""
    return (frames + _STACKED - 1) // _STACKED


class Letters(tf.Module):
    """Log-mel frames -> scores of letters, one step per 30 ms.

    One convolution, then blocks that add to their input: convolution, normalisation, ReLU. A score sees 1.1 s.

    :param units: width of the layers.
    :param seed: makes the initial values the same in every run.
    """

    def __init__(self, units: int, seed: int) -> None:
        super().__init__(name="letters")
        self.first_kernel = he_normal("first_kernel", [_FIRST_WIDTH, _STACKED * signals.BANDS, units], seed)
        self.first_bias = tf.Variable(tf.zeros([units]), name="first_bias")
        self.kernels = [he_normal(f"kernel_{n}", [_WIDTH, units, units], seed + 1 + n) for n in range(_BLOCKS)]
        self.scales = [tf.Variable(tf.ones([units]), name=f"scale_{n}") for n in range(_BLOCKS)]
        self.offsets = [tf.Variable(tf.zeros([units]), name=f"offset_{n}") for n in range(_BLOCKS)]
        self.output_kernel = he_normal("output_kernel", [units, ctc.CLASSES], seed + 1 + _BLOCKS)
        self.output_bias = tf.Variable(tf.zeros([ctc.CLASSES]), name="output_bias")

    def parameters(self) -> list[tf.Variable]:
        blocks = [*self.kernels, *self.scales, *self.offsets]
        return [self.first_kernel, self.first_bias, *blocks, self.output_kernel, self.output_bias]

    def logits(self, features: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        """Return unnormalised scores, float32 [n, steps, CLASSES]; values after a recording's end do not affect them.

        :param features: float32 [n, all frames, BANDS].
        :param frames: number of frames of each recording, int32 [n].
        """
        features = features[:, : tf.reduce_max(frames)]
        count, there = tf.unstack(tf.shape(features)[:2])
        steps = steps_of(there)
        features = tf.pad(features, [[0, 0], [0, steps * _STACKED - there], [0, 0]])
        stacked = tf.reshape(features, [count, steps, _STACKED * signals.BANDS])
        own = tf.sequence_mask(steps_of(frames), steps, tf.float32)[:, :, tf.newaxis]
        hidden = own * tf.nn.relu(_convolve(stacked, self.first_kernel) + self.first_bias)
        for kernel, scale, offset in zip(self.kernels, self.scales, self.offsets, strict=True):
            hidden += own * tf.nn.relu(_normalise(_convolve(hidden, kernel)) * scale + offset)
        return tf.matmul(hidden, self.output_kernel) + self.output_bias

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int16, name="samples")])
    def serve(self, samples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the text of one recording of 16 kHz, string scalar."""
        features = signals.log_mel(samples)[tf.newaxis]
        frames = tf.shape(features)[1:2]
        return {"text": ctc.texts(self.logits(features, frames), steps_of(frames))[0]}

    def loss(self, features: tf.Tensor, letters: tf.Tensor, frames: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Return the mean loss of a recording in nats, float32 scalar; for the arguments see `Recordings.tensors`."""
        return tf.reduce_mean(ctc.losses(self.logits(features, frames), steps_of(frames), letters, lengths))

    def judge(
        self, features: tf.Tensor, letters: tf.Tensor, frames: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the recognised text of each recording, string [n], and its loss in nats, float32 [n]."""
        logits = self.logits(features, frames)
        return ctc.texts(logits, steps_of(frames)), ctc.losses(logits, steps_of(frames), letters, lengths)


def _convolve(values: tf.Tensor, kernel: tf.Variable) -> tf.Tensor:
    return tf.nn.conv1d(values, kernel, stride=1, padding="SAME")


def _normalise(values: tf.Tensor) -> tf.Tensor:
    """Normalise each step by itself (Ba, Kiros, Hinton 2016, https://arxiv.org/abs/1607.06450)."""
    mean, variance = tf.nn.moments(values, axes=[-1], keepdims=True)
    return (values - mean) * tf.math.rsqrt(variance + 1e-5)
