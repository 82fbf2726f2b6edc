"""The interface between a workload and the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.config import Config

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from engine.loop.evaluate import Score

ScoreOf = Callable[["np.ndarray", "np.ndarray"], "Score"]
"""Computes the score from the results of a model's `judge` for all held-out examples: answers and losses, in order."""


class Model(Protocol):
    """A `tf.Module` whose constructor creates all its variables.

    The engine trains an instance whose large variables are split over all parameter servers, and evaluates an unsplit
    one on the chief. Variables that `loss` itself changes, such as the moving statistics of a normalisation, are saved,
    judged and exported with the trained ones.
    """

    def parameters(self) -> Sequence[tf.Variable]:
        """Return the variables to train."""

    def loss(self, *batch: tf.Tensor) -> tf.Tensor:
        """Return the mean loss of the examples, float32 scalar."""

    def judge(self, *batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return which examples are answered correctly, bool [n], and the loss of each, float32 [n].

        If the workload has a `score`, return the answers themselves instead.
        """

    @property
    def serve(self) -> Callable[..., Mapping[str, tf.Tensor]]:
        """Return the outputs of the exported model by name: a `tf.function` with an input signature."""


class Data(Protocol):
    """A training set with numbered examples, and a held-out set.

    `engine.data.memory` implements it for data that fits into memory, `engine.data.records` for larger data.
    """

    @property
    def count(self) -> int:
        """Return the number of training examples."""

    @property
    def files(self) -> Sequence[Path]:
        """Return the files of both sets, always in the same order: they identify the data of a run."""

    def source(self) -> tf.data.Dataset:
        """Return the source that is created once on every worker; each call of the chief takes one element of it."""

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        """Return a function for the examples of each step of one call, as the model's `loss` expects them.

        It is called on a worker, inside a `tf.function`.

        :param element: element of the source.
        :param first: the call's first step, int64 scalar.
        :param end: the step after its last, int64 scalar.
        :param numbers: returns the numbers of a step's examples, int64 [n].
        :returns: returns the examples of a step; it is called once per step, in order.
        """

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield all held-out examples, in batches of at most `size`, as the model's `judge` expects them."""


@dataclass(frozen=True)
class Workload:
    """A model and its data.

    :param model: creates the model; its initial values must depend on `config.seed` alone.
    :param kind: properties of a checkpoint, in addition to optimizer and data: a run only continues if all are equal.
    :param score: computes the score from the answers, if it is more than the share of right ones.
    """

    config: Config
    model: Callable[[], Model]
    data: Data
    kind: Mapping[str, object]
    score: ScoreOf | None = None
