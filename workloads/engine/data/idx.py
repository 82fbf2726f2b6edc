"""Read idx files, the format of MNIST (http://yann.lecun.com/exdb/mnist, "File formats for the MNIST database").

Convert labelled images from idx files to records.

python -m engine.data.idx IDX_FOLDER RECORDS_FOLDER
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from engine.data import records
from engine.errors import InputError

SETS = {
    "training": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "held_out": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
"""Names of the image and label files, as in MNIST and compatible data sets."""

_IMAGES_MAGIC, _IMAGES_HEADER = 0x803, 16
_LABELS_MAGIC, _LABELS_HEADER = 0x801, 8


def folder(data_dir: Path, name: str) -> Path:
    """Return the folder that contains the file `name`: `data_dir` or its subdirectory `data`.

    :raises InputError: neither contains it.
    """
    found = next((d for d in (data_dir, data_dir / "data") if (d / name).is_file()), None)
    if found is None:
        raise InputError(
            f"data_dir {data_dir} holds no {name}, nor does its subdirectory data.",
            "Mount the data set there, on the chief and on every worker.",
        )
    return found


@dataclass(frozen=True)
class Labelled:
    """Images and their labels, in one file each.

    :param pixels: pixels of one image, one byte each.
    """

    images: Path
    labels: Path
    pixels: int
    count: int

    @classmethod
    def open(cls, folder: Path, images: str, labels: str, pixels: int) -> Labelled:
        """Check the two files.

        :raises InputError: one is missing, is not an idx file, has a wrong size, or they differ in number.
        """
        count = _count(folder / images, _IMAGES_MAGIC, _IMAGES_HEADER, pixels)
        label_count = _count(folder / labels, _LABELS_MAGIC, _LABELS_HEADER, 1)
        if count != label_count:
            raise InputError(
                f"{images} has {count} images and {labels} {label_count} labels.", "Use files that belong together."
            )
        return cls(folder / images, folder / labels, pixels, count)

    @property
    def files(self) -> tuple[Path, Path]:
        return self.images, self.labels

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the images, uint8 [count, pixels], and labels, uint8 [count]."""
        images = np.fromfile(self.images, np.uint8, offset=_IMAGES_HEADER).reshape(-1, self.pixels)
        return images, np.fromfile(self.labels, np.uint8, offset=_LABELS_HEADER)

    def tensors(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the same as tensors, whose operations read the files on the device that runs them."""
        images = tf.io.decode_raw(tf.io.read_file(str(self.images)), tf.uint8)[_IMAGES_HEADER:]
        labels = tf.io.decode_raw(tf.io.read_file(str(self.labels)), tf.uint8)[_LABELS_HEADER:]
        return tf.reshape(images, [self.count, self.pixels]), tf.reshape(labels, [self.count])


def read_sets(data_dir: Path, pixels: int) -> list[Labelled]:
    """Return the training set and the held-out set, in `data_dir` or its subdirectory `data`.

    :param pixels: pixels of one image.
    :raises InputError: a file is missing or damaged.
    """
    where = folder(data_dir, SETS["training"][0])
    return [Labelled.open(where, *names, pixels) for names in SETS.values()]


def _count(path: Path, magic: int, header: int, item: int) -> int:
    """Return the number of items from a file's header, after checking it against the file's size."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(header)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).", "Mount the whole data set.") from error
    if len(head) < header or struct.unpack(">I", head[:4])[0] != magic:
        raise InputError(f"{path} is not an idx file of the expected kind.", "Use the uncompressed files.")
    (count,) = struct.unpack(">I", head[4:8])
    if count == 0 or size != header + count * item:
        raise InputError(f"{path} should hold {count} items but has {size} bytes.", "Fetch the file again.")
    return count


SHARDS = 8


def write(data_dir: Path, folder: Path, pixels: int = 28 * 28) -> None:
    """Write both sets.

    :param pixels: pixels of one image.
    :raises InputError: an idx file is missing or damaged.
    """
    sets = zip(SETS, read_sets(data_dir, pixels), strict=True)
    records.write(folder, {name: list(_records(each)) for name, each in sets}, SHARDS)


def _records(labelled: Labelled) -> Iterator[bytes]:
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
