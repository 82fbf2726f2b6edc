"""Tests of some steps on small data, in this process."""

import pytest

from tests.trainings import processes
from training.mnist_ps.config import Config
from training.mnist_ps.main import workload

tf = pytest.importorskip("tensorflow")
from engine.loop.evaluate import evaluate  # noqa: E402
from engine.loop.optimizer import Adam  # noqa: E402
from engine.loop.step import Counters, make_train_call  # noqa: E402

LOSSES = [2.174169, 2.05688, 1.926609, 1.755593, 1.741218, 1.525284, 1.41418, 1.383934]
"""Losses of the first steps with the default flags; they may only change intentionally."""


def test_the_defaults_train_as_ever(tmp_path):
    mnist = workload(Config(data_dir=processes.write(tmp_path)))
    model = mnist.model()
    assert sum(tf.size(parameter).numpy() for parameter in model.parameters()) == 79510
    adam = Adam(model.parameters(), tf.distribute.get_strategy(), mnist.config.learning_rate)
    train_call = make_train_call(mnist, model, adam, Counters(lanes=1))
    source = iter(mnist.data.source())

    def train(first, count):
        return train_call(source, *(tf.constant(number, tf.int64) for number in (0, first, count)))[0].numpy()

    assert [train(step, 1) for step in range(8)] == pytest.approx(LOSSES, rel=1e-4)
    assert train(8, 92) == pytest.approx(18.760204, rel=1e-3)
    score = evaluate(model, mnist.data, list)
    assert (score.accuracy, score.examples) == (1.0, 16) and score.loss == pytest.approx(0.0139818, rel=1e-3)
