"""Convert labelled images from idx files to records.

python -m lib.idx_records IDX_FOLDER RECORDS_FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from lib import idx, record_files

SHARDS = 8


def write(data_dir: Path, folder: Path, pixels: int = 28 * 28) -> None:
    """Write both sets.

    :param pixels: pixels of one image.
    :raises InputError: an idx file is missing or damaged.
    """
    sets = zip(idx.SETS, idx.sets(data_dir, pixels), strict=True)
    record_files.write(folder, {name: list(_records(each)) for name, each in sets}, SHARDS)


def _records(labelled: idx.Labelled) -> Iterator[bytes]:
    for image, label in zip(*labelled.arrays(), strict=True):
        features = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
        }
        yield tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def decode(record: tf.Tensor, pixels: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the image, uint8 [pixels], and the label, uint8, of one record, string scalar."""
    kinds = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, kinds)
    image = tf.ensure_shape(tf.io.decode_raw(found["image"], tf.uint8), [pixels])
    return image, tf.cast(found["label"], tf.uint8)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
