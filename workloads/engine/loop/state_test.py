"""Tests of steps, their counting, Adam, and the checkpoint, in this process."""

from __future__ import annotations

import pytest

from engine.config import Config
from engine.errors import InputError
from engine.loop import state
from engine.loop.evaluate import Score, evaluate
from engine.loop.optimizer import Adam
from engine.loop.step import Counters, make_train_call
from engine.run.checkpoint import ChiefCheckpoint
from engine.run.run_folder import RunFolder
from tests.trainings import processes, sample
from training.mnist_ps import main as mnist_ps

tf = pytest.importorskip("tensorflow")


class Small:
    """Everything that the chief builds, without a cluster."""

    def __init__(self, inputs=16):
        workload = sample.workload(Config(batch_size=8, learning_rate=0.01), inputs)
        self.data = workload.data
        self.model = workload.model()
        self.adam = Adam(self.model.parameters(), tf.distribute.get_strategy(), workload.config.learning_rate)
        self.counters = Counters(lanes=2)
        self.call = make_train_call(workload, self.model, self.adam, self.counters)
        self.source = iter(self.data.source())

    def train(self, lane, first, count):
        total, done = self.call(self.source, *(tf.constant(n, tf.int64) for n in (lane, first, count)))
        return float(total), int(done)

    def checkpoint(self, folder):
        step = self.counters.global_step
        return ChiefCheckpoint(folder, [folder], "/job:localhost", model=self.model, adam=self.adam, global_step=step)


def test_steps_lower_the_loss_and_are_counted_once():
    small = Small()
    before, done = small.train(0, 0, 1)
    assert done == 1 and small.counters.global_step.numpy() == 1
    total, done = small.train(1, 1, 199)
    assert done == 199 and small.counters.global_step.numpy() == 200
    assert total / done < before


def test_all_held_out_examples_are_judged_in_batches(monkeypatch):
    small = Small()
    small.train(0, 0, 200)
    whole = evaluate(small.model, small.data, list)
    assert (whole.accuracy, whole.examples) == (1.0, 64) and whole.loss < 1.0
    monkeypatch.setattr("engine.loop.evaluate.BATCH_SIZE", 10)
    looks = []
    parts = evaluate(small.model, small.data, lambda: looks.append(1))
    assert (parts.accuracy, parts.examples, len(looks)) == (1.0, 64, 7)
    assert parts.loss == pytest.approx(whole.loss, rel=1e-5)


def test_a_workload_may_have_a_score_of_its_own(monkeypatch):
    small = Small()
    monkeypatch.setattr("engine.loop.evaluate.BATCH_SIZE", 10)
    seen = []

    def score(answers, losses):
        seen.append((answers, losses))
        return Score(0.5, 1.5, 3, {"word_error_rate": 0.25})

    found = evaluate(small.model, small.data, list, score)
    assert found.figures == {"accuracy": 0.5, "loss": 1.5, "word_error_rate": 0.25}
    ((answers, losses),) = seen
    assert len(answers) == len(losses) == 64


def test_a_repeated_call_goes_on_where_it_was():
    small = Small()
    small.train(0, 0, 4)
    assert small.train(0, 0, 10)[1] == 6
    assert small.train(0, 0, 10) == (0.0, 0)
    assert small.counters.global_step.numpy() == 10
    assert small.counters.next_step.numpy().tolist() == [10, 0]


def test_a_late_step_does_not_set_back_what_another_worker_has_done():
    small = Small()
    batches = small.data.batches

    def while_another_is_ahead(*arguments):
        batch = batches(*arguments)

        def of_step(step):
            ahead = small.counters.next_step.scatter_update(tf.IndexedSlices(tf.constant(8, tf.int64), 0))
            with tf.control_dependencies([ahead]):
                return batch(step)

        return of_step

    object.__setattr__(small.data, "batches", while_another_is_ahead)
    small.train(0, 0, 1)
    assert small.counters.next_step.numpy().tolist() == [8, 0]


@pytest.mark.parametrize(("decay_steps", "rates"), [(0, (0.1, 0.1, 0.1)), (4, (0.1, 0.0853553, 0.05))])
def test_adam_is_adam(decay_steps, rates):
    """Compare with algorithm 1 of the paper, written out for one scalar; the rate falls as (1 + cos) / 2."""
    parameter = tf.Variable([1.0])
    adam = Adam([parameter], tf.distribute.get_strategy(), 0.1, decay_steps)
    expected, first, second = 1.0, 0.0, 0.0
    for step, gradient in enumerate((0.5, -2.0, 0.25), 1):
        tf.function(lambda g, s: adam.apply([g], s) and None)(tf.constant([gradient]), tf.constant(step))
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        expected -= rates[step - 1] * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)) ** 0.5 + 1e-7)
        assert parameter.numpy()[0] == pytest.approx(expected, rel=1e-4)


def test_more_steps_than_planned_go_on_at_the_rate_of_a_run_that_was_planned_so():
    """Check the README's statement about a finished run that continues: the rate falls to 0 again, at the new end."""

    def rates(planned, steps):
        return [float(rate) for rate in map(Adam([], tf.distribute.get_strategy(), 0.1, planned)._rate, steps)]

    steps = [tf.constant(float(number)) for number in range(13)]
    assert rates(8, steps[8:9]) == pytest.approx([0.0], abs=1e-9)
    goes_on = rates(12, steps[8:])
    assert goes_on[0] == pytest.approx(0.025) and goes_on[-1] == pytest.approx(0.0, abs=1e-9)
    assert goes_on == sorted(goes_on, reverse=True)
    # A few more steps raise it only slightly: the run does not start from scratch.
    assert rates(9, steps[8:9]) == pytest.approx([0.0030154], rel=1e-4)


def test_a_checkpoint_brings_everything_back(tmp_path):
    small = Small()
    assert small.checkpoint(tmp_path).restore() is None
    small.train(0, 0, 20)
    small.checkpoint(tmp_path).save(20)
    small.train(0, 20, 20)
    other = Small()
    assert other.checkpoint(tmp_path).restore().endswith("ckpt-20")
    assert other.counters.global_step.numpy() == 20
    other.train(0, 20, 20)
    for mine, theirs in zip(small.model.parameters(), other.model.parameters(), strict=True):
        assert mine.numpy() == pytest.approx(theirs.numpy(), abs=1e-6)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    small = Small()
    checkpoint = small.checkpoint(tmp_path)
    for step in (10, 20):
        small.train(0, step - 10, 10)
        checkpoint.save(step)
    (tmp_path / "ckpt-20.index").write_bytes(b"cut off")
    other = Small()
    assert other.checkpoint(tmp_path).restore().endswith("ckpt-10")
    assert other.counters.global_step.numpy() == 10
    (tmp_path / "ckpt-10.index").unlink()
    with pytest.raises(InputError, match=r"No checkpoint can be read.*workloads_state=restarted"):
        Small().checkpoint(tmp_path).restore()


def test_a_full_volume_is_named_and_keeps_the_checkpoint_before(tmp_path, monkeypatch):
    small = Small()
    checkpoint = small.checkpoint(tmp_path)
    checkpoint.save(10)

    def full(*_):
        tf.io.TFRecordWriter("/dev/full").write(b"x" * 1_000_000)

    monkeypatch.setattr(checkpoint._checkpoint, "write", full)
    with pytest.raises(InputError, match=rf"{tmp_path} cannot be written \(No space left on device\)\. Make room"):
        checkpoint.save(20)
    assert Small().checkpoint(tmp_path).restore().endswith("ckpt-10")


def test_checkpoints_are_found_without_tensorflows_list_of_them(tmp_path):
    small = Small()
    checkpoint = small.checkpoint(tmp_path)
    for step in (5, 10):
        small.train(0, step - 5, 5)
        checkpoint.save(step)
    (tmp_path / "checkpoint").unlink()
    assert Small().checkpoint(tmp_path).restore().endswith("ckpt-10")


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    Small().checkpoint(tmp_path).save(0)
    with pytest.raises(InputError, match=r"does not fit this training.*workloads_state=restarted"):
        Small(inputs=17).checkpoint(tmp_path).restore()


def test_another_data_set_of_the_same_size_is_refused_by_name(tmp_path):
    def live(data_dir):
        folder = RunFolder(tmp_path / "run", "one", print)
        try:
            one = mnist_ps.workload(mnist_ps.Config(data_dir=data_dir))
            state.State(one, tf.distribute.get_strategy(), 1, folder, "/job:localhost").save(0)
        finally:
            folder.release()

    live(processes.write(tmp_path / "one"))
    live(processes.write(tmp_path / "moved"))
    images = processes.write(tmp_path / "other") / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1] + b"\1")
    with pytest.raises(InputError, match=r"checkpoints with data [0-9a-f]{16}, and [0-9a-f]{16} is requested"):
        live(tmp_path / "other")


def test_the_device_that_is_named_writes_the_files(tmp_path):
    # A chief names its own device: a ps has no volume, and may run on another node.
    folder = RunFolder(tmp_path / "run", "one", print)
    one = mnist_ps.workload(mnist_ps.Config(data_dir=processes.write(tmp_path / "data")))
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match="nowhere"):
            state.State(one, tf.distribute.get_strategy(), 1, folder, "/job:nowhere").save(0)
    finally:
        folder.release()
