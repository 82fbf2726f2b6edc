"""Tests of a model with variables that are not trained, such as the statistics of batch normalisation."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import pytest

from engine.config import Config
from engine.errors import DivergedError, InputError
from engine.loop import state
from engine.loop.state import variables
from engine.run.checkpoint import read_model
from engine.run.run_folder import RunFolder
from tests.trainings import sample

tf = pytest.importorskip("tensorflow")


INPUTS = 12


class Normalised(sample.Linear):
    """The sample with a normalisation of inputs that are far from 0."""

    def __init__(self):
        super().__init__(INPUTS)
        self.mean = tf.Variable(tf.zeros([INPUTS]), trainable=False, name="mean")
        self.seen = tf.Variable(0, dtype=tf.int64, trainable=False, name="seen")

    def normal(self, inputs, training):
        if not training:
            return inputs - self.mean
        mean = tf.reduce_mean(inputs, 0)
        self.mean.assign(0.5 * self.mean + 0.5 * mean)
        self.seen.assign_add(1)
        return inputs - mean

    def loss(self, inputs, labels):
        return tf.reduce_mean(super().judge(self.normal(inputs + 100.0, training=True), labels)[1])

    def judge(self, inputs, labels):
        return super().judge(self.normal(inputs + 100.0, training=False), labels)

    def _probabilities(self, inputs):
        return super()._probabilities(self.normal(inputs, training=False))


class OfKeras(Normalised):
    """The same with a Keras layer, which creates its variables when it is built."""

    def __init__(self, built=True):
        sample.Linear.__init__(self, INPUTS)
        self.layer = keras.layers.BatchNormalization(momentum=0.5)
        if built:
            self.layer.build((None, INPUTS))

    def parameters(self):
        return [self.kernel, *(each.value for each in self.layer.trainable_variables)]

    def normal(self, inputs, training):
        return self.layer(inputs, training=training)


@pytest.fixture
def trained(tmp_path):
    """Return a function that trains a model in this process, and returns its state with the run's folder."""
    folder = RunFolder(tmp_path / "run", "one", print)

    def train(model, steps=20):
        one = sample.workload(Config(batch_size=8, learning_rate=0.01), INPUTS)
        object.__setattr__(one, "model", model)
        found = state.State(one, tf.distribute.get_strategy(), 1, folder, "/job:localhost")
        found.train_call(iter(one.data.source()), *(tf.constant(n, tf.int64) for n in (0, 0, steps)))
        return SimpleNamespace(state=found, folder=folder, data=one.data)

    yield train
    folder.release()


@pytest.mark.parametrize(("model", "count"), [(Normalised, 3), (OfKeras, 5)])
def test_what_is_not_trained_is_saved_judged_and_exported(trained, model, count):
    run = trained(model)
    path = run.state.save(20)
    read = model()
    read_model(read, path)
    assert len(variables(read)) == count
    values = [each.numpy() for each in variables(run.state._model)]
    for copied, restored, value in zip(variables(run.state._copy), variables(read), values, strict=True):
        assert copied.numpy() == pytest.approx(value) and restored.numpy() == pytest.approx(value)
    # The statistics have moved far from their initial values: without them the answers differ.
    assert max(float(tf.reduce_max(tf.cast(each, tf.float32))) for each in variables(read)) > 50.0
    serve = tf.saved_model.load(str(run.state.export(20))).signatures["serving_default"]
    inputs = tf.eye(INPUTS) + 100.0
    answers = serve(inputs=inputs)["probabilities"].numpy()
    assert answers == pytest.approx(read.serve(inputs)["probabilities"].numpy(), abs=1e-6)
    assert answers != pytest.approx(model().serve(inputs)["probabilities"].numpy(), abs=1e-3)
    assert run.state.score(20, list).loss < 2.5


def test_statistics_that_are_not_finite_are_never_saved(trained):
    run = trained(Normalised)
    run.state._model.mean.assign([float("nan")] * INPUTS)
    with pytest.raises(DivergedError, match="After step 20, mean is not finite"):
        run.state.save(20)


def test_a_parameter_that_no_checkpoint_holds_is_refused(trained):
    class Hidden(sample.Linear):
        def __init__(self):
            super().__init__(INPUTS)
            self.rest = SimpleNamespace(bias=tf.Variable([1.0], name="bias"))

        def parameters(self):
            return [self.kernel, self.rest.bias]

    with pytest.raises(InputError, match="trains bias, which its checkpoints would not hold"):
        trained(Hidden)


def test_variables_that_are_made_late_are_refused(trained):
    run = trained(lambda: OfKeras(built=False))
    with pytest.raises(InputError, match=r"had 1 variables after its constructor, and has 5 after .* constructor"):
        run.state.save(20)
