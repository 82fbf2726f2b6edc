"""MNIST: 60,000 and 10,000 held-out grey images of handwritten digits, 28 x 28 pixels, in four idx files."""

from __future__ import annotations

from pathlib import Path

from engine.data import idx
from engine.data.memory import InMemory

PIXELS = 28 * 28
CLASSES = 10


def mnist(data_dir: Path) -> InMemory:
    """Return images, uint8 [n, 784], and labels, uint8 [n]; the files are in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing or damaged.
    """
    training, held_out = idx.read_sets(data_dir, PIXELS)
    return InMemory(training.count, training.tensors, held_out.arrays, [*training.files, *held_out.files])
