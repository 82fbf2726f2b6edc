"""Data sets as TFRecord files: several shards, and the position of each record in them.

FOLDER/records.json     the sets: number of records, and shards with their sizes in bytes
FOLDER/SET.places       shard and first byte of each record: int64 [records, 2], little-endian
FOLDER/SET-NUMBER-of-SHARDS.tfrecord

TFRecord has no index of its own. With the positions a record can be read by its number, and the whole set can be
shuffled, without reading the records before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from lib import whole_file
from lib.errors import InputError

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
