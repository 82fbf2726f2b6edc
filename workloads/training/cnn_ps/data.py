"""MNIST: 60,000 and 10,000 held-out grey images of handwritten digits, 28 x 28 pixels, in idx files or in records."""

from __future__ import annotations

import functools
from pathlib import Path

from engine.data import idx, records
from engine.data.memory import InMemory
from engine.data.records import Records

SIDE = 28
CLASSES = 10


def mnist(data_dir: Path) -> InMemory | Records:
    """Return images, uint8 [n, 784], and labels, uint8 [n]; the files are in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing or damaged.
    """
    for folder in (data_dir, data_dir / "data"):
        if (folder / records.MANIFEST).is_file():
            training, held_out = (records.RecordSet.open(folder, name) for name in idx.SETS)
            return Records(training, held_out, functools.partial(idx.decode, pixels=SIDE * SIDE))
    images, others = idx.read_sets(data_dir, SIDE * SIDE)
    return InMemory(images.count, images.tensors, others.arrays, [*images.files, *others.files])
