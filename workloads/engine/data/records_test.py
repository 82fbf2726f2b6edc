"""Tests that records give the same examples for the same step as the set in memory."""

from __future__ import annotations

import pytest

from engine.data import records as record_files
from engine.data.idx import SHARDS, write
from engine.data.records import Records
from engine.errors import InputError
from engine.loop.step import example_numbers
from tests.trainings import processes
from training.cnn_ps.data import mnist

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")

TRAIN, TEST, BATCH = 70, 16, 16
"""Neither multiples of the number of shards nor of the batch size."""


@pytest.fixture
def folders(tmp_path):
    """Create the same set, with distinct images, as idx files and as records."""
    files = processes.write(tmp_path / "idx", TRAIN, TEST)
    images = files / "train-images-idx3-ubyte"
    noise = np.random.default_rng(1).integers(0, 256, TRAIN * 784, np.uint8)
    images.write_bytes(images.read_bytes()[:16] + noise.tobytes())
    write(files, tmp_path / "records/data")
    return files, tmp_path / "records"


def batches(data, first, end):
    """Return the examples of a call with these steps."""

    @tf.function
    def call(element, first, end):
        feed = data.batches(element, first, end, lambda step: example_numbers(step, BATCH, data.count, 1))
        seen = tf.TensorArray(tf.uint8, tf.cast(end - first, tf.int32), element_shape=[BATCH, 785])
        for step in tf.range(first, end):
            images, labels = feed(step)
            seen = seen.write(tf.cast(step - first, tf.int32), tf.concat([images, labels[:, tf.newaxis]], 1))
        return seen.stack()

    element = next(iter(data.source()))
    return call(element, *(tf.constant(number, tf.int64) for number in (first, end))).numpy()


def test_steps_see_the_same_examples(folders):
    in_memory, records = map(mnist, folders)
    assert isinstance(records, Records) and not isinstance(in_memory, Records)
    assert records.count == in_memory.count == TRAIN
    # Beyond the end of an epoch, which has four steps.
    whole = batches(records, 0, 10)
    assert len({example.tobytes() for example in whole[:4].reshape(-1, 785)}) == 4 * BATCH
    np.testing.assert_array_equal(whole, batches(in_memory, 0, 10))
    # A call that continues in the middle.
    np.testing.assert_array_equal(batches(records, 3, 7), whole[3:7])
    assert batches(records, 5, 5).shape == (0, BATCH, 785)


def test_the_held_out_set_is_the_same(folders):
    for one, other in zip(*(data.held_out(10) for data in map(mnist, folders)), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


def test_shards_share_the_records(folders):
    training = record_files.RecordSet.open(folders[1] / "data", "training")
    table = training.table().numpy()
    assert (len(training.shards), table.shape) == (SHARDS, (TRAIN, 2))
    assert {*np.bincount(table[:, 0])} == {8, 9}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("records.json", "{", r"records\.json does not describe the set training \(JSON"),
        ("records.json", '{"held_out": {}}', r"does not describe the set training \(KeyError"),
        ("training.places", "short", r"training\.places is missing or does not have 1120 bytes"),
        (
            "held_out-00003-of-00008.tfrecord",
            "cut",
            r"held_out-00003-of-00008\.tfrecord is missing or does not have \d+ bytes",
        ),
    ],
)
def test_damaged_files_are_named(folders, name, content, words):
    (folders[1] / "data" / name).write_text(content)
    with pytest.raises(InputError, match=words):
        mnist(folders[1])
