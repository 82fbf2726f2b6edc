"""MNIST in idx files (http://yann.lecun.com/exdb/mnist, section "File formats for the MNIST database")."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from lib.errors import InputError

PIXELS = 28 * 28
CLASSES = 10

_IMAGES_MAGIC, _IMAGES_HEADER = 0x803, 16
_LABELS_MAGIC, _LABELS_HEADER = 0x801, 8
_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


@dataclass(frozen=True)
class Mnist:
    """Where the files lie, and how many examples they hold."""

    train_images: Path
    train_labels: Path
    test_images: Path
    test_labels: Path
    train_count: int
    test_count: int


def find(data_dir: Path) -> Mnist:
    """Find and check the four files in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing, is not an idx file, has a wrong size, or images and labels differ in number.
    """
    folder = next((d for d in (data_dir, data_dir / "data") if (d / _NAMES[0]).is_file()), None)
    if folder is None:
        raise InputError(
            f"data_dir {data_dir} holds no {_NAMES[0]}, nor does its subdirectory data.",
            "Mount the MNIST data set there, on the chief and on every worker.",
        )
    train_images, train_labels, test_images, test_labels = (folder / name for name in _NAMES)
    return Mnist(
        train_images,
        train_labels,
        test_images,
        test_labels,
        train_count=_pair(train_images, train_labels),
        test_count=_pair(test_images, test_labels),
    )


def _pair(images: Path, labels: Path) -> int:
    """Number of examples in two files that belong together."""
    count = _count(images, _IMAGES_MAGIC, _IMAGES_HEADER, PIXELS)
    label_count = _count(labels, _LABELS_MAGIC, _LABELS_HEADER, 1)
    if count != label_count:
        raise InputError(
            f"{images.name} has {count} images and {labels.name} {label_count} labels.",
            "Use files that belong together.",
        )
    return count


def _count(path: Path, magic: int, header: int, item: int) -> int:
    """Number of items in a file, from its header, after comparing it with the file's size."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(header)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).", "Mount the whole MNIST data set.") from error
    if len(head) < header or struct.unpack(">I", head[:4])[0] != magic:
        raise InputError(f"{path} is not an idx file of the expected kind.", "Use the uncompressed MNIST files.")
    (count,) = struct.unpack(">I", head[4:8])
    if count == 0 or size != header + count * item:
        raise InputError(f"{path} should hold {count} items but has {size} bytes.", "Fetch the file again.")
    return count


def test_set(files: Mnist) -> tuple[np.ndarray, np.ndarray]:
    """All held-out examples: images uint8 [n, 784], labels uint8 [n]."""
    images = np.fromfile(files.test_images, np.uint8, offset=_IMAGES_HEADER).reshape(-1, PIXELS)
    return images, np.fromfile(files.test_labels, np.uint8, offset=_LABELS_HEADER)


def training_dataset(files: Mnist) -> tf.data.Dataset:
    """A data set that yields the whole training set for ever: images uint8 [n, 784], labels uint8 [n].

    Each worker reads the files once and keeps them (47 MB); the steps then pick their examples by number. The graph
    holds paths, not data, so the files must be on the workers too.
    """

    def load(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        images = tf.io.decode_raw(tf.io.read_file(str(files.train_images)), tf.uint8)[_IMAGES_HEADER:]
        labels = tf.io.decode_raw(tf.io.read_file(str(files.train_labels)), tf.uint8)[_LABELS_HEADER:]
        return tf.reshape(images, [files.train_count, PIXELS]), tf.reshape(labels, [files.train_count])

    return tf.data.Dataset.from_tensors(0).map(load).cache().repeat()


def example_numbers(step: tf.Tensor, batch_size: int, count: int, seed: int) -> tf.Tensor:
    """Numbers of the examples of one global step, int64 [batch_size].

    Every epoch is a permutation of the training set that depends on seed and epoch only. Which worker does a step,
    a restart, and a repeated step therefore do not change what the step sees. An epoch ends with the last whole batch.

    :param step: global step counted from 0, int64 scalar.
    :param count: size of the training set, at least `batch_size`.
    """
    steps_per_epoch = count // batch_size
    epoch = step // steps_per_epoch
    positions = (step % steps_per_epoch) * batch_size + tf.range(batch_size, dtype=tf.int64)
    return tf.random.experimental.index_shuffle(
        positions, seed=tf.stack([tf.constant(seed, tf.int64), epoch]), max_index=tf.constant(count - 1, tf.int64)
    )
