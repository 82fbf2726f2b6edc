"""Adam for asynchronous parameter servers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from engine.loop.sharding import joined, pieces

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
"""Kingma and Ba 2015, https://arxiv.org/abs/1412.6980, with TensorFlow's usual epsilon."""


class Adam(tf.Module):
    """Kingma and Ba's Adam, with each moment on the device of its parameter.

    The fused operation runs on the parameter server that holds the parameter, or a piece of it. A worker sends only its
    gradient, and the update of one piece is locked against those of other workers. Keras's optimizers are not used,
    because their step counter is not exact under a coordinator.

    :param parameters: variables to train.
    :param strategy: places each moment on the device of its parameter.
    :param learning_rate: step size.
    :param decay_steps: steps after which the rate has fallen to 0, along half a cosine (Loshchilov and Hutter 2017,
        https://arxiv.org/abs/1608.03983, equation 5); 0: never. If a finished run continues with more steps, the rate
        rises to its value in a run planned with these from the beginning: a warm restart as in the paper, but only that
        far.
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
        :param step: number of this step counted from 1, for the bias correction. The chief assigned it, so that no
            worker has to read a shared counter.
        :returns: the update operations, which must finish before the step is counted.
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
        """Return the step size after this many steps, float32 scalar."""
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
