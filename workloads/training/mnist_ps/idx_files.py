"""Small data sets in the format of MNIST, for tests."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np


def write(folder: Path, train: int = 64, test: int = 16) -> Path:
    """Write four idx files whose classes are easy to tell apart (pixel rows 0 to 9), and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = np.zeros((count, 28, 28), np.uint8)
        images[np.arange(count), labels] = 255
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())
    return folder
