"""MNIST: 60,000 and 10,000 held-out grey images of handwritten digits, 28 x 28 pixels, in four idx files."""

from __future__ import annotations

from pathlib import Path

from engine.memory import InMemory
from lib import idx

SIDE = 28
CLASSES = 10

_TRAINING = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
_HELD_OUT = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def mnist(data_dir: Path) -> InMemory:
    """Images, uint8 [n, 784], and labels, uint8 [n]; the files lie in `data_dir` or its subdirectory `data`.

    :raises InputError: a file is missing or damaged.
    """
    folder = idx.folder(data_dir, _TRAINING[0])
    training, held_out = (idx.Labelled.open(folder, *names, SIDE * SIDE) for names in (_TRAINING, _HELD_OUT))
    return InMemory(training.count, training.tensors, held_out.arrays)
