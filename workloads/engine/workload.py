"""What a workload gives the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.config import Config

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from engine.evaluate import Score

ScoreOf = Callable[["np.ndarray", "np.ndarray"], "Score"]
"""From what a model's `judge` has said of all held-out examples, answers and losses in order."""


class Model(Protocol):
    """A `tf.Module` of variables that its constructor makes. The engine trains one whose large variables lie in pieces
    on all parameter servers, and evaluates another, in one piece, on the chief. Variables that `loss` changes itself,
    such as the moving statistics of a normalisation, are saved, judged and exported with those that are trained."""

    def parameters(self) -> Sequence[tf.Variable]:
        """The variables to train."""

    def loss(self, *batch: tf.Tensor) -> tf.Tensor:
        """Mean loss of the examples, float32 scalar."""

    def judge(self, *batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Which examples are answered rightly, bool [n], and the loss of each, float32 [n]. Where the workload has a
        `score`, the answers themselves."""

    @property
    def serve(self) -> Callable[..., Mapping[str, tf.Tensor]]:
        """What the exported model answers, by name: a `tf.function` with an input signature."""


class Data(Protocol):
    """A training set whose examples have numbers, and a held-out set. `engine.memory` has one for what fits into
    memory, `engine.records` one for what does not."""

    @property
    def count(self) -> int:
        """Number of training examples."""

    @property
    def files(self) -> Sequence[Path]:
        """Those that hold both sets, always in the same order: by them a run knows its data from another."""

    def source(self) -> tf.data.Dataset:
        """Made once on every worker; each call of the chief takes one element of it."""

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        """What the steps of one call train on, as the model's `loss` wants it. Called on a worker, inside of a
        `tf.function`.

        :param element: of the source.
        :param first: the call's first step, int64 scalar.
        :param end: the step after its last.
        :param numbers: those of a step's examples, int64 [n].
        :returns: the examples of a step; it is asked for each step once, in order.
        """

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        """All held-out examples, in batches of at most `size`, as the model's `judge` wants them."""


@dataclass(frozen=True)
class Workload:
    """What is trained, and on what.

    :param model: makes the model; its initial values must follow from `config.seed` alone.
    :param kind: what a checkpoint is of, beside optimizer and data: a run goes on only where it is the same.
    :param score: what the answers come to, where more is to be said of them than how many are right.
    """

    config: Config
    model: Callable[[], Model]
    data: Data
    kind: Mapping[str, object]
    score: ScoreOf | None = None
