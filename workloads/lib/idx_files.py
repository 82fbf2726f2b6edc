"""Small data sets in the format of MNIST, for tests."""

from __future__ import annotations

import struct
from pathlib import Path


def write(folder: Path, train: int = 64, test: int = 16) -> Path:
    """Write four idx files whose classes are easy to distinguish (pixel rows 0 to 9), and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = bytes(number % 10 for number in range(count))
        images = b"".join(bytes(28 * label) + b"\xff" * 28 + bytes(28 * (27 - label)) for label in labels)
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + images)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return folder
