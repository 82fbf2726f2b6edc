"""Checkpoints that only the chief writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from lib.errors import InputError, VolumeError, unwritable
from lib.metrics import os_error
from lib.run_folder import steps

KEEP = 3
"""Older checkpoints are the fallback when the newest was cut off by a power failure."""


def read_model(model: tf.Module, checkpoint: Path, io_device: str | None = None) -> None:
    """Give a model in this process's memory the parameters of a checkpoint.

    :param checkpoint: its path without the endings of its files.
    :param io_device: TensorFlow's name of this process's device, where it has others.
    :raises InputError: it is of another model.
    :raises tf.errors.OpError: it is gone or damaged.
    """
    options = tf.train.CheckpointOptions(experimental_io_device=io_device)
    try:
        status = tf.train.Checkpoint(model=model).read(str(checkpoint), options)
        status.assert_existing_objects_matched()
        status.expect_partial()
    except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
        raise InputError(
            f"{checkpoint} does not fit this training ({str(error).splitlines()[0]}).",
            "Give evaluator and chief the same flags.",
        ) from error


class ChiefCheckpoint:
    """Saves and restores trackable objects whose variables live on the parameter servers.

    By default TensorFlow lets every device write its own part of a checkpoint, which needs a volume shared by chief and
    parameter servers. Here the values travel to the chief, and the chief does the input and output.

    :param directory: where the checkpoints are written.
    :param sources: folders with checkpoints to go on from, the newest first.
    :param io_device: TensorFlow's name of the chief's device.
    :param objects: name -> trackable.
    """

    def __init__(
        self, directory: Path, sources: Sequence[Path], io_device: str, **objects: tf.Module | tf.Variable
    ) -> None:
        self._directory, self._sources = directory, sources
        self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(directory), max_to_keep=KEEP)

    def save(self, step: int) -> str:
        """Write a checkpoint and return its path.

        :param step: number of global steps that went into it; part of the file name.
        :raises VolumeError: the volume is full, or the directory cannot be written. The checkpoint before stays.
        """
        try:
            return self._manager.save(checkpoint_number=step, options=self._options)
        except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
            raise unwritable(self._directory, os_error(error)) from error

    def restore(self) -> str | None:
        """Restore the newest readable checkpoint; None where there is nothing to go on from.

        :raises InputError: there are checkpoints, but of something else. Training then never starts over silently.
        :raises VolumeError: nor where none of them can be read.
        """
        unreadable = []
        for path in self._newest_first():
            try:
                tf.train.load_checkpoint(path)
            except tf.errors.OpError as error:
                unreadable.append(f"{Path(path).name}: {str(error).splitlines()[0]}")
                continue
            try:
                self._checkpoint.restore(path, options=self._options).assert_existing_objects_matched()
                return path
            except (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError) as error:
                unreadable.append(f"{Path(path).name}: {str(error).splitlines()[0]}")
            except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
                raise InputError(
                    f"{path} does not fit this training ({str(error).splitlines()[0]}).",
                    "Use the model flags it was written with, or start over with workloads_state=restarted.",
                ) from error
        if unreadable:
            raise VolumeError(
                f"No checkpoint can be read ({'; '.join(unreadable)}).",
                "Start over with workloads_state=restarted.",
            )
        return None

    def _newest_first(self) -> Iterator[str]:
        for folder in self._sources:
            yield from (str(folder / f"ckpt-{step}") for step in steps(folder))
