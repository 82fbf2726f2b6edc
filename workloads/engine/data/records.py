"""Data sets as TFRecord files: several shards, and the position of each record in them.

FOLDER/records.json     the sets: number of records, and shards with their sizes in bytes
FOLDER/SET.places       shard and first byte of each record: int64 [records, 2], little-endian
FOLDER/SET-NUMBER-of-SHARDS.tfrecord

TFRecord has no index of its own. With the positions a record can be read by its number, and the whole set can be
shuffled, without reading the records before it.

Data sets that do not fit into memory: records in files, read by number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from engine.errors import InputError
from engine.run import whole_file

MANIFEST = "records.json"

_FRAME_BYTES = 8 + 4 + 4
"""Length, its checksum, and the checksum of the data (https://www.tensorflow.org/tutorials/load_data/tfrecord,
"TFRecords format details")."""
_PLACE_BYTES = 2 * 8


def write(folder: Path, sets: Mapping[str, Sequence[bytes]], shards: int) -> None:
    """Write sets of records.

    :param shards: number of files per set, with equal numbers of records.
    :raises OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {}
    for name, records in sets.items():
        sizes, places = {}, []
        for shard, numbers in enumerate(np.array_split(np.arange(len(records)), shards)):
            file = folder / f"{name}-{shard:05d}-of-{shards:05d}.tfrecord"
            begin = 0
            with tf.io.TFRecordWriter(str(file)) as writer:
                for number in numbers:
                    places.append((shard, begin))
                    begin += _FRAME_BYTES + len(records[number])
                    writer.write(records[number])
            sizes[file.name] = begin
        np.array(places, "<i8").tofile(folder / f"{name}.places")
        manifest[name] = {"records": len(records), "shards": sizes}
    # The manifest is written last, because a folder that has it counts as complete.
    whole_file.write(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")


@dataclass(frozen=True)
class RecordSet:
    """One set of records.

    :param places: file with the positions of the records.
    :param shards: files, in order.
    """

    count: int
    places: Path
    shards: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path, name: str) -> RecordSet:
        """Check the files of a set by their sizes.

        :raises InputError: the manifest is damaged or lacks the set, or a file is missing or has a wrong size.
        """
        try:
            known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))[name]
            count, shards = int(known["records"]), {str(file): int(size) for file, size in known["shards"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{folder / MANIFEST} does not describe the set {name} ({type(error).__name__}: {error}).",
                "Write the records again.",
            ) from error
        for file, size in {f"{name}.places": count * _PLACE_BYTES, **shards}.items():
            path = folder / file
            if not path.is_file() or path.stat().st_size != size:
                raise InputError(f"{path} is missing or does not have {size} bytes.", "Copy the records again.")
        return cls(count, folder / f"{name}.places", tuple(folder / file for file in shards))

    def table(self) -> tf.Tensor:
        """Return shard and first byte of each record, int64 [count, 2], read on the device that runs the operation."""
        return tf.reshape(tf.io.decode_raw(tf.io.read_file(str(self.places)), tf.int64), [self.count, 2])

    def record(self, place: tf.Tensor) -> tf.Tensor:
        """Return one record, string scalar.

        :param place: its row of the table.
        """
        # tf.data.TFRecordDataset has no argument for the first byte. The reader keeps no state for the next record.
        shard = tf.gather([str(file) for file in self.shards], place[0])
        kind = {"output_types": [tf.string], "output_shapes": [[]]}
        reader = tf.raw_ops.TFRecordDatasetV2(
            filenames=[shard], compression_type="", buffer_size=0, byte_offsets=[place[1]]
        )
        one = tf.raw_ops.TakeDataset(input_dataset=reader, count=1, **kind)
        return tf.raw_ops.DatasetToSingleElement(dataset=one, **kind)[0]

    def in_order(self) -> tf.data.Dataset:
        """Return all records."""
        return tf.data.TFRecordDataset([str(file) for file in self.shards])


_AHEAD = 2
"""Batches that are read and decoded while a step computes."""


@dataclass(frozen=True)
class Records:
    """Examples in shards of TFRecords; a worker reads only those that its steps need.

    :param training: the training set.
    :param held_out_set: the held-out set.
    :param decode: TensorFlow operations that decode one record, string scalar, to an example, a tuple of tensors.
    """

    training: RecordSet
    held_out_set: RecordSet
    decode: Callable[[tf.Tensor], tuple[tf.Tensor, ...]]

    @property
    def count(self) -> int:
        return self.training.count

    @property
    def files(self) -> list[Path]:
        return [file for each in (self.training, self.held_out_set) for file in (each.places, *each.shards)]

    def source(self) -> tf.data.Dataset:
        """Return the positions of all records, repeated for ever; 16 bytes each, read once."""
        return tf.data.Dataset.from_tensors(0).map(lambda _: self.training.table()).cache().repeat()

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        def read(number: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return self.decode(self.training.record(tf.gather(element, number)))

        size = tf.size(numbers(first), out_type=tf.int64)
        of_all_steps = (
            tf.data.Dataset.range(first, end)
            .map(numbers)
            .unbatch()
            .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .batch(size, drop_remainder=True)
            .prefetch(_AHEAD)
        )
        iterator = iter(of_all_steps)
        return lambda _: iterator.get_next()

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        examples = self.held_out_set.in_order().map(self.decode, num_parallel_calls=tf.data.AUTOTUNE)
        yield from examples.batch(size).prefetch(_AHEAD).as_numpy_iterator()
