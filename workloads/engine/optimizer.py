"""Adam for asynchronous parameter servers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from engine.pieces import joined, pieces

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
"""Kingma and Ba 2015, https://arxiv.org/abs/1412.6980, with TensorFlow's usual epsilon."""


class Adam(tf.Module):
    """Kingma and Ba's Adam, whose moments live beside their parameters.

    The fused operation runs on the parameter server that holds the parameter, or the piece of it: a worker sends its
    gradient and nothing else, and the update of one piece is locked against those of other workers. Keras's optimizers
    are not used because their step counter is not exact under a coordinator.

    :param parameters: variables to train.
    :param strategy: places each moment on the device of its parameter.
    :param learning_rate: step size.
    :param decay_steps: after how many steps it has fallen to 0, along half a cosine (Loshchilov and Hutter 2017,
        https://arxiv.org/abs/1608.03983, equation 5); 0: never. Where a finished run goes on to more steps it rises to
        what it would have been with these from the beginning, a warm restart as there, but only as far.
    """

    def __init__(
        self,
        parameters: Sequence[tf.Variable],
        strategy: tf.distribute.Strategy,
        learning_rate: float,
        decay_steps: int = 0,
    ) -> None:
        super().__init__(name="adam")
        self._parameters = parameters
        self._learning_rate, self._decay_steps = learning_rate, decay_steps
        self.first_moments = [_moment(parameter, strategy) for parameter in parameters]
        self.second_moments = [_moment(parameter, strategy) for parameter in parameters]

    def apply(self, gradients: Sequence[tf.Tensor], step: tf.Tensor) -> list[tf.Operation]:
        """Update every parameter once; call it inside a `tf.function`.

        :param gradients: one for each of the parameters' pieces.
        :param step: number of this step counted from 1, for the bias correction. It is the number the chief gave out,
            so that no worker has to read a shared counter.
        :returns: the update operations, to be waited for before the step is counted.
        """
        exponent = tf.cast(step, tf.float32)
        rate = self._rate(exponent - 1.0)
        return [
            tf.raw_ops.ResourceApplyAdam(
                var=parameter.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=BETA_1**exponent,
                beta2_power=BETA_2**exponent,
                lr=rate,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=EPSILON,
                grad=gradient,
                use_locking=True,
            )
            for parameter, first, second, gradient in zip(
                pieces(self._parameters),
                pieces(self.first_moments),
                pieces(self.second_moments),
                gradients,
                strict=True,
            )
        ]

    def _rate(self, steps: tf.Tensor) -> tf.Tensor | float:
        """The step size after so many steps, float32 scalar."""
        if not self._decay_steps:
            return self._learning_rate
        return 0.5 * self._learning_rate * (1.0 + tf.cos(math.pi * steps / self._decay_steps))


def _moment(parameter: tf.Variable, strategy: tf.distribute.Strategy) -> tf.Variable:
    parts = []
    for piece in pieces([parameter]):
        with strategy.extended.colocate_vars_with(piece):
            name = f"{piece.name.split(':')[0]}_moment"
            parts.append(tf.Variable(tf.zeros(piece.shape), trainable=False, name=name))
    return joined(parts)
