"""MNIST: 60,000 and 10,000 held-out grey images of handwritten digits, 28 x 28 pixels, in idx files or in records."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from engine.memory import InMemory
from engine.records import Records
from lib import idx, record_files

SIDE = 28
CLASSES = 10

FILES = {
    "training": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "held_out": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def mnist(data_dir: Path) -> InMemory | Records:
    """Images, uint8 [n, 784], and labels, uint8 [n]; the files lie in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing or damaged.
    """
    for folder in (data_dir, data_dir / "data"):
        if (folder / record_files.MANIFEST).is_file():
            training, held_out = (record_files.RecordSet.open(folder, name) for name in FILES)
            return Records(training, held_out, _decode)
    images, others = idx_sets(data_dir)
    return InMemory(images.count, images.tensors, others.arrays)


def idx_sets(data_dir: Path) -> list[idx.Labelled]:
    """The training set and the held-out one, in idx files."""
    folder = idx.folder(data_dir, FILES["training"][0])
    return [idx.Labelled.open(folder, *names, SIDE * SIDE) for names in FILES.values()]


def _decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    kinds = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, kinds)
    image = tf.ensure_shape(tf.io.decode_raw(found["image"], tf.uint8), [SIDE * SIDE])
    return image, tf.cast(found["label"], tf.uint8)
