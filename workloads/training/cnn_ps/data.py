"""MNIST: 60,000 and 10,000 held-out grey images of handwritten digits, 28 x 28 pixels, in idx files or in records."""

from __future__ import annotations

import functools
from pathlib import Path

from engine.memory import InMemory
from engine.records import Records
from lib import idx, idx_records, record_files

SIDE = 28
CLASSES = 10


def mnist(data_dir: Path) -> InMemory | Records:
    """Return images, uint8 [n, 784], and labels, uint8 [n]; the files are in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing or damaged.
    """
    for folder in (data_dir, data_dir / "data"):
        if (folder / record_files.MANIFEST).is_file():
            training, held_out = (record_files.RecordSet.open(folder, name) for name in idx.SETS)
            return Records(training, held_out, functools.partial(idx_records.decode, pixels=SIDE * SIDE))
    images, others = idx.sets(data_dir, SIDE * SIDE)
    return InMemory(images.count, images.tensors, others.arrays, [*images.files, *others.files])
