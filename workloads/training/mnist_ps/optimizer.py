"""Adam for asynchronous parameter servers."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
"""Kingma and Ba 2015, https://arxiv.org/abs/1412.6980, with TensorFlow's usual epsilon."""


class Adam(tf.Module):
    """Kingma and Ba's Adam, whose moments live beside their parameters.

    The fused operation runs on the parameter server that holds the parameter: a worker sends its gradient and nothing
    else, and the update of one parameter is locked against those of other workers. Keras's optimizers are not used
    because their step counter is not exact under a coordinator.

    :param parameters: variables to train.
    :param strategy: places each moment on the device of its parameter.
    :param learning_rate: step size.
    """

    def __init__(
        self, parameters: Sequence[tf.Variable], strategy: tf.distribute.Strategy, learning_rate: float
    ) -> None:
        super().__init__(name="adam")
        self._parameters = parameters
        self._learning_rate = learning_rate
        self.first_moments = [_moment(parameter, strategy) for parameter in parameters]
        self.second_moments = [_moment(parameter, strategy) for parameter in parameters]

    def apply(self, gradients: Sequence[tf.Tensor], step: tf.Tensor) -> list[tf.Operation]:
        """Update every parameter once; call it inside a `tf.function`.

        :param step: number of this step counted from 1, for the bias correction. It is the number the chief gave out,
            so that no worker has to read a shared counter.
        :returns: the update operations, to be waited for before the step is counted.
        """
        exponent = tf.cast(step, tf.float32)
        return [
            tf.raw_ops.ResourceApplyAdam(
                var=parameter.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=BETA_1**exponent,
                beta2_power=BETA_2**exponent,
                lr=self._learning_rate,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=EPSILON,
                grad=gradient,
                use_locking=True,
            )
            for parameter, first, second, gradient in zip(
                self._parameters, self.first_moments, self.second_moments, gradients, strict=True
            )
        ]


def _moment(parameter: tf.Variable, strategy: tf.distribute.Strategy) -> tf.Variable:
    with strategy.extended.colocate_vars_with(parameter):
        return tf.Variable(tf.zeros(parameter.shape), trainable=False, name=f"{parameter.name.split(':')[0]}_moment")
