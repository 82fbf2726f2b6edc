"""MNIST from idx files to records.

python -m training.cnn_ps.write_records IDX_FOLDER RECORDS_FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from lib import idx, record_files
from training.cnn_ps.data import FILES, idx_sets

SHARDS = 8


def write(data_dir: Path, folder: Path) -> None:
    """Write both sets.

    :raises InputError: an idx file is missing or damaged.
    """
    sets = zip(FILES, idx_sets(data_dir), strict=True)
    record_files.write(folder, {name: list(_records(each)) for name, each in sets}, SHARDS)


def _records(labelled: idx.Labelled) -> Iterator[bytes]:
    for image, label in zip(*labelled.arrays(), strict=True):
        features = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
        }
        yield tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
