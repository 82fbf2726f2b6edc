"""Tests of some steps on small data, in this process."""

import numpy as np
import pytest

from tests.trainings import processes
from training.cnn_ps.config import Config
from training.cnn_ps.main import workload

tf = pytest.importorskip("tensorflow")
from engine.loop.evaluate import evaluate  # noqa: E402
from engine.loop.optimizer import Adam  # noqa: E402
from engine.loop.step import Counters, make_train_call  # noqa: E402


def test_the_shape_is_the_one_that_is_promised(tmp_path):
    cnn = workload(Config(data_dir=processes.write(tmp_path)))
    model = cnn.model()
    assert sum(tf.size(parameter).numpy() for parameter in model.parameters()) == 824_326
    assert {parameter.ref() for parameter in model.parameters()} == {each.ref() for each in model.trainable_variables}
    assert model.logits(tf.zeros([3, 784], tf.uint8)).shape == (3, 10)
    again = cnn.model()
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_it_learns(tmp_path):
    cnn = workload(Config(data_dir=processes.write(tmp_path), batch_size=16))
    model = cnn.model()
    adam = Adam(model.parameters(), tf.distribute.get_strategy(), cnn.config.learning_rate)
    train_call = make_train_call(cnn, model, adam, Counters(lanes=1))
    steps = [tf.constant(number, tf.int64) for number in (0, 0, 20)]
    total, done = train_call(iter(cnn.data.source()), *steps)
    score = evaluate(model, cnn.data, list)
    assert (int(done), score.accuracy, score.examples) == (20, 1.0, 16)
    assert score.loss < float(total) / 20
