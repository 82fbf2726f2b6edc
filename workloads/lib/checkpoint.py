"""Checkpoints that only the chief writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from lib import whole_file
from lib.errors import InputError, VolumeError, unwritable
from lib.metrics import os_error
from lib.run_folder import steps

KEEP = 3
"""Newest checkpoints that stay: the older of them are the fallback when the newest was cut off by a power failure."""
ANCHOR_SECONDS = 60.0
"""A fast run saves every few seconds: where a disk says too early that it has something, all of the newest lie in its
cache. One that stays is older than this."""


def kept(saved: Mapping[int, float]) -> set[int]:
    """The steps whose checkpoints stay: the newest, the anchor, and the one that becomes the next anchor.

    :param saved: step -> when its checkpoint was on the disk, in seconds; the newest last.
    """
    newest = list(saved)[-KEEP:]
    now = saved[newest[-1]]
    old = [step for step, moment in saved.items() if now - moment >= ANCHOR_SECONDS]
    young = [step for step in saved if step not in old]
    return {*newest, *old[-1:], *young[:1]}


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

    :param directory: where the checkpoints are written; no other program writes there.
    :param sources: folders with checkpoints to go on from, the newest first.
    :param io_device: TensorFlow's name of the chief's device.
    :param clock: seconds that never go back.
    :param objects: name -> trackable.
    """

    def __init__(
        self,
        directory: Path,
        sources: Sequence[Path],
        io_device: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        **objects: tf.Module | tf.Variable,
    ) -> None:
        self._directory, self._sources, self._clock = directory, sources, clock
        self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._saved: dict[int, float] = {}

    def save(self, step: int) -> str:
        """Write a checkpoint and return its path. It is on the disk when this returns, and before an older one goes.

        :param step: number of global steps that went into it; part of the file name.
        :raises VolumeError: the volume is full, or the directory cannot be written. The checkpoint before stays.
        :raises StalledError: the volume does not answer.
        """
        path = self._directory / f"ckpt-{step}"
        try:
            whole_file.make_folder(self._directory)
            # A checkpoint of TensorFlow's own manager counts, too, and an engine from before asks for the count.
            self._checkpoint.save_counter.assign_add(1)
            self._checkpoint.write(str(path), self._options)
            for file in self._files(step):
                whole_file.sync(file)
            whole_file.sync(self._directory)
            self._saved.pop(step, None)
            self._saved[step] = self._clock()
            self._forget()
        except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
            raise unwritable(self._directory, os_error(error)) from error
        except OSError as error:
            raise unwritable(self._directory, error) from error
        return str(path)

    def _forget(self) -> None:
        """Note in TensorFlow's own list, the file `checkpoint`, what stays, and remove the rest."""
        stay = kept(self._saved)
        names = [f"ckpt-{step}" for step in self._saved if step in stay]
        lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{each}"' for each in names)]
        whole_file.write(self._directory / "checkpoint", "\n".join(lines) + "\n")
        for step in [each for each in self._saved if each not in stay]:
            # The index first: what has one is whole.
            for file in reversed(self._files(step)):
                file.unlink(missing_ok=True)
            del self._saved[step]

    def _files(self, step: int) -> list[Path]:
        """Of a checkpoint; the index, which is written last, comes last."""
        return sorted(self._directory.glob(f"ckpt-{step}.*"))

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
