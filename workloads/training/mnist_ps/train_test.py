"""One step on small data, in this process, and the checkpoint."""

import pytest

from lib.errors import InputError
from training.mnist_ps import idx_files
from training.mnist_ps.config import Config

tf = pytest.importorskip("tensorflow")
from lib.checkpoint import ChiefCheckpoint  # noqa: E402
from training.mnist_ps import data  # noqa: E402
from training.mnist_ps.evaluate import evaluate  # noqa: E402
from training.mnist_ps.model import Classifier  # noqa: E402
from training.mnist_ps.optimizer import Adam  # noqa: E402
from training.mnist_ps.step import Counters, make_train_call  # noqa: E402


class Small:
    """Everything the chief builds, without a cluster."""

    def __init__(self, folder, hidden_units=8):
        self.files = data.find(idx_files.write(folder))
        config = Config(batch_size=8, learning_rate=0.01)
        self.model = Classifier(hidden_units, seed=1)
        self.adam = Adam(self.model.parameters(), tf.distribute.get_strategy(), config.learning_rate)
        self.counters = Counters(lanes=2)
        self.call = make_train_call(self.model, self.adam, self.counters, config, self.files.train_count)
        self.examples = iter(data.training_dataset(self.files))

    def train(self, lane, first, count):
        total, done = self.call(self.examples, *(tf.constant(n, tf.int64) for n in (lane, first, count)))
        return float(total), int(done)

    def checkpoint(self, folder):
        step = self.counters.global_step
        return ChiefCheckpoint(folder, [folder], "/job:localhost", model=self.model, adam=self.adam, global_step=step)


def test_steps_lower_the_loss_and_are_counted_once(tmp_path):
    small = Small(tmp_path)
    before, done = small.train(0, 0, 1)
    assert done == 1 and small.counters.global_step.numpy() == 1
    total, done = small.train(1, 1, 199)
    assert done == 199 and small.counters.global_step.numpy() == 200
    assert total / done < before
    accuracy, loss = evaluate(small.model, *data.test_set(small.files))
    assert accuracy == 1.0 and loss < 0.5


def test_a_repeated_call_goes_on_where_it_was(tmp_path):
    small = Small(tmp_path)
    small.train(0, 0, 4)
    assert small.train(0, 0, 10)[1] == 6
    assert small.train(0, 0, 10) == (0.0, 0)
    assert small.counters.global_step.numpy() == 10
    assert small.counters.next_step.numpy().tolist() == [10, 0]


def test_adam_is_adam(tmp_path):
    """Against the formula of the paper (algorithm 1), written out for one scalar."""
    parameter = tf.Variable([1.0])
    adam = Adam([parameter], tf.distribute.get_strategy(), 0.1)
    expected, first, second = 1.0, 0.0, 0.0
    for step, gradient in enumerate((0.5, -2.0, 0.25), 1):
        tf.function(lambda g, s: adam.apply([g], s) and None)(tf.constant([gradient]), tf.constant(step))
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        expected -= 0.1 * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)) ** 0.5 + 1e-7)
        assert parameter.numpy()[0] == pytest.approx(expected, rel=1e-4)


def test_a_checkpoint_brings_everything_back(tmp_path):
    small = Small(tmp_path)
    assert small.checkpoint(tmp_path / "ckpt").restore() is None
    small.train(0, 0, 20)
    small.checkpoint(tmp_path / "ckpt").save(20)
    small.train(0, 20, 20)
    other = Small(tmp_path)
    assert other.checkpoint(tmp_path / "ckpt").restore().endswith("ckpt-20")
    assert other.counters.global_step.numpy() == 20
    other.train(0, 20, 20)
    for mine, theirs in zip(small.model.parameters(), other.model.parameters(), strict=True):
        assert mine.numpy() == pytest.approx(theirs.numpy(), abs=1e-6)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    small = Small(tmp_path)
    checkpoint = small.checkpoint(tmp_path / "ckpt")
    for step in (10, 20):
        small.train(0, step - 10, 10)
        checkpoint.save(step)
    (tmp_path / "ckpt/ckpt-20.index").write_bytes(b"cut off")
    other = Small(tmp_path)
    assert other.checkpoint(tmp_path / "ckpt").restore().endswith("ckpt-10")
    assert other.counters.global_step.numpy() == 10
    (tmp_path / "ckpt/ckpt-10.index").unlink()
    with pytest.raises(InputError, match=r"No checkpoint can be read.*workloads_state=restarted"):
        Small(tmp_path).checkpoint(tmp_path / "ckpt").restore()


def test_a_full_volume_is_named_and_keeps_the_checkpoint_before(tmp_path, monkeypatch):
    small = Small(tmp_path)
    checkpoint = small.checkpoint(tmp_path / "ckpt")
    checkpoint.save(10)

    def full(**_):
        tf.io.TFRecordWriter("/dev/full").write(b"x" * 1_000_000)

    monkeypatch.setattr(checkpoint._manager, "save", full)
    with pytest.raises(InputError, match=rf"{tmp_path}/ckpt cannot be written \(No space left on device\)\. Make room"):
        checkpoint.save(20)
    assert Small(tmp_path).checkpoint(tmp_path / "ckpt").restore().endswith("ckpt-10")


def test_checkpoints_are_found_without_tensorflows_list_of_them(tmp_path):
    small = Small(tmp_path)
    checkpoint = small.checkpoint(tmp_path / "ckpt")
    for step in (5, 10):
        small.train(0, step - 5, 5)
        checkpoint.save(step)
    (tmp_path / "ckpt/checkpoint").unlink()
    assert Small(tmp_path).checkpoint(tmp_path / "ckpt").restore().endswith("ckpt-10")


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    Small(tmp_path).checkpoint(tmp_path / "ckpt").save(0)
    with pytest.raises(InputError, match=r"does not fit this training.*workloads_state=restarted"):
        Small(tmp_path, hidden_units=9).checkpoint(tmp_path / "ckpt").restore()
