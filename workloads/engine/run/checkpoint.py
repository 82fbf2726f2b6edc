"""Checkpoints, which only the chief writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from engine.errors import InputError, VolumeError, unwritable
from engine.run import whole_file
from engine.run.metrics import os_error
from engine.run.run_folder import steps

KEEP = 3
"""Newest checkpoints to keep. The older ones are the fallback if a power failure truncates the newest."""
ANCHOR_SECONDS = 60.0
"""Minimum age of one checkpoint that is kept. A fast run saves every few seconds; if a disk acknowledges writes too
early, all recent checkpoints may exist only in its cache."""


def kept(saved: Mapping[int, float]) -> set[int]:
    """Return the steps whose checkpoints are kept: the newest, the anchor, and the next anchor.

    :param saved: step -> time at which its checkpoint was on the disk, in seconds; the newest last.
    """
    newest = list(saved)[-KEEP:]
    now = saved[newest[-1]]
    old = [step for step, moment in saved.items() if now - moment >= ANCHOR_SECONDS]
    young = [step for step in saved if step not in old]
    return {*newest, *old[-1:], *young[:1]}


def read_model(model: tf.Module, checkpoint: Path, io_device: str | None = None) -> None:
    """Load the parameters of a checkpoint into a model in this process's memory.

    :param checkpoint: its path without file extensions.
    :param io_device: TensorFlow's name of this process's device, if it has several.
    :raises InputError: the checkpoint belongs to another model.
    :raises tf.errors.OpError: the checkpoint is missing or damaged.
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
    """The checkpoints of trackable objects whose variables are on the parameter servers.

    By default TensorFlow lets every device write its own part of a checkpoint, which needs a volume shared by chief and
    parameter servers. Here the values are sent to the chief, which does all input and output.

    :param directory: folder for new checkpoints; no other program writes there.
    :param sources: folders with existing checkpoints, the newest first.
    :param io_device: TensorFlow's name of the chief's device.
    :param clock: monotonic clock in seconds.
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
        """Write a checkpoint to the disk, then remove older ones, and return its path.

        :param step: number of global steps that it contains; part of the file name.
        :raises VolumeError: the volume is full, or the directory cannot be written. The previous checkpoint is kept.
        :raises StalledError: the volume does not answer.
        """
        path = self._directory / f"ckpt-{step}"
        try:
            whole_file.make_folder(self._directory)
            # TensorFlow's own manager counts checkpoints, too, and earlier versions of the engine expect the counter.
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
        """List the checkpoints to keep in TensorFlow's own file `checkpoint`, and remove the others."""
        stay = kept(self._saved)
        names = [f"ckpt-{step}" for step in self._saved if step in stay]
        lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{each}"' for each in names)]
        whole_file.write(self._directory / "checkpoint", "\n".join(lines) + "\n")
        for step in [each for each in self._saved if each not in stay]:
            # The index is removed first, because a checkpoint with an index counts as complete.
            for file in reversed(self._files(step)):
                file.unlink(missing_ok=True)
            del self._saved[step]

    def _files(self, step: int) -> list[Path]:
        """Return the files of a checkpoint; the index, which is written last, comes last."""
        return sorted(self._directory.glob(f"ckpt-{step}.*"))

    def restore(self) -> str | None:
        """Restore the newest readable checkpoint and return its path; None if there is none.

        :raises InputError: a checkpoint belongs to another model. Training never starts over silently.
        :raises VolumeError: checkpoints exist, but none can be read.
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
