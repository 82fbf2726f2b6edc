"""The trained state: variables on the parameter servers, their checkpoints, and a copy of the model on the chief.

All variables of a model, including untrained ones: the statistics of a normalisation are learned, too.

Export the trained model as a SavedModel, which can be used without this code.

A digest that distinguishes data sets of equal size without reading them completely.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf

from engine.errors import DivergedError, InputError, VolumeError, unwritable
from engine.loop.evaluate import Score, evaluate
from engine.loop.optimizer import Adam
from engine.loop.sharding import Sharded, bytes_held
from engine.loop.step import Counters, make_train_call
from engine.run import whole_file
from engine.run.checkpoint import ChiefCheckpoint, read_model
from engine.run.metrics import os_error
from engine.run.run_folder import RunFolder
from engine.workload import Model, Workload


def variables(model: Model) -> list[tf.Variable]:
    """Return every variable that a checkpoint of the model holds, once, in an order common to all models of one class.

    TensorFlow finds them as for a checkpoint, so those of a Keras layer are included. A variable that is split over
    parameter servers counts as one.
    """
    found: dict[int, tf.Variable] = {}
    for node in tf.train.TrackableView(model).descendants():
        variable = _plain(node)
        if isinstance(variable, tf.Variable | Sharded):
            found.setdefault(id(variable), variable)
    return list(found.values())


def require_tracked(model: Model) -> None:
    """Check that the model's checkpoints hold all variables that it trains.

    :raises InputError: it hides a parameter, for example in an object that is not a `tf.Module`.
    """
    known = {id(each) for each in variables(model)}
    for parameter in model.parameters():
        if id(_plain(parameter)) not in known:
            raise InputError(
                f"The model trains {_name(parameter)}, which its checkpoints would not hold.",
                "Make it an attribute of the model, or of a tf.Module in the model.",
            )


def copy(whole: Model, trained: Model) -> None:
    """Copy the values of the trained model to a model in this process's memory.

    :param whole: model of the same class.
    :raises InputError: they have different variables, for example because one is only created when the model is called.
    """
    mine, theirs = variables(whole), variables(trained)
    shapes = [[(each.shape.as_list(), each.dtype) for each in found] for found in (mine, theirs)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"The model had {len(mine)} variables after its constructor, and has {len(theirs)} after training.",
            "Create all of them in its constructor; a Keras layer creates its variables in build().",
        )
    for variable, value in zip(mine, theirs, strict=True):
        variable.assign(value)


def not_finite(model: Model) -> str:
    """Return the name of a variable with a number that is not finite; empty if there is none."""
    numbers = (each for each in variables(model) if each.dtype.is_floating)
    return next((_name(each) for each in numbers if not tf.reduce_all(tf.math.is_finite(each))), "")


def _plain(node: Any) -> Any:
    """Return TensorFlow's variable, which Keras 3 wraps in its own type."""
    return node if isinstance(node, tf.Variable | Sharded) else getattr(node, "value", None)


def _name(variable: tf.Variable) -> str:
    return str(variable.name).split(":")[0]


def export(model: Model, folder: Path, io_device: str) -> None:
    """Write the model, with `serve` as the signature `serving_default`, and replace an earlier export.

    It is on the disk when this returns.

    :param model: model in this process's memory.
    :param folder: folder of the SavedModel.
    :param io_device: TensorFlow's name of this process's device.
    :raises VolumeError: the folder cannot be written.
    """
    part = folder.with_suffix(".part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        options = tf.saved_model.SaveOptions(experimental_io_device=io_device)
        tf.saved_model.save(model, str(part), signatures=model.serve, options=options)
        whole_file.sync_tree(part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        whole_file.sync(folder.parent)
    except OSError as error:
        raise unwritable(folder, error) from error
    except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
        raise unwritable(folder, os_error(error)) from error


BLOCK_BYTES = 64 * 1024
"""Size of a block. Reading three blocks per file takes milliseconds, even for a thousand files on a server. Different
data sets differ in these blocks; a few changed bytes elsewhere in a large file go unnoticed."""


def digest(files: Iterable[Path]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of each file's size and its first, middle and last block.

    The names and locations of the files do not count; their order does.

    :raises InputError: a file cannot be read.
    """
    found = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                found.update(size.to_bytes(8, "big"))
                last = max(0, size - BLOCK_BYTES)
                for begin in (0, last // 2, last):
                    stream.seek(begin)
                    found.update(stream.read(BLOCK_BYTES))
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}).", "Mount the whole data set.") from error
    return found.hexdigest()[:16]


class State:
    """Everything that a checkpoint holds.

    :param strategy: places the variables.
    :param lanes: number of calls that may be pending at once.
    :param folder: the run's folder, held by this chief.
    :param io_device: TensorFlow's name of this process's device, which reads and writes all files.
    :raises InputError: the folder's checkpoints do not fit, a file of the data cannot be read, or the model trains a
        variable that no checkpoint would hold.
    """

    def __init__(
        self,
        workload: Workload,
        strategy: tf.distribute.Strategy,
        lanes: int,
        folder: RunFolder,
        io_device: str,
    ) -> None:
        config = workload.config
        self._data, self._score_of = workload.data, workload.score
        self._folder, self._io_device = folder, io_device
        with strategy.scope():
            self._model = workload.model()
            require_tracked(self._model)
            adam = Adam(self._model.parameters(), strategy, config.learning_rate, config.decay_steps)
            self.counters = Counters(lanes)
        # Bytes of parameters and moments by parameter server.
        self.bytes_held = bytes_held([*self._model.parameters(), *adam.first_moments, *adam.second_moments])
        self.train_call = make_train_call(workload, self._model, adam, self.counters)
        # The copy is fetched once per step, checked for non-finite values, and evaluated batch by batch.
        self._copy = workload.model()
        self._copied: int | None = None
        data = {"examples": workload.data.count, "data": digest(workload.data.files)}
        kind = {**workload.kind, "optimizer": "adam", **data}
        self._checkpoint = ChiefCheckpoint(
            folder.save_to,
            folder.open(kind, config.train_steps, config.resume),
            io_device,
            model=self._model,
            adam=adam,
            global_step=self.counters.global_step,
        )

    def restore(self) -> str | None:
        """Restore the newest checkpoint and return its path, None if there is none."""
        return self._checkpoint.restore()

    def save(self, step: int) -> str:
        """Write a checkpoint and return its path. No step may be pending, here and in `score`.

        :param step: number of applied steps, here and in `score`.
        :raises DivergedError: a variable of the model is not finite.
        :raises InputError: the model has created variables after its constructor.
        :raises VolumeError: the run's folder cannot be written, most likely because the volume is full.
        :raises StalledError: another chief has taken over.
        """
        self._fetch(step)
        # No loss has used the last step's update yet.
        if name := not_finite(self._copy):
            raise DivergedError(f"After step {step}, {name} is not finite.")
        path = self._checkpoint.save(step)
        self._folder.require_held()
        self._folder.prune()
        return path

    def score(self, step: int, alive: Callable[[], object]) -> Score:
        """Evaluate on the held-out set.

        :param alive: called after each batch.
        """
        self._fetch(step)
        return evaluate(self._copy, self._data, alive, self._score_of)

    def take(self, step: int, checkpoint: Path) -> None:
        """Load a checkpoint into the copy of the model, for `export`; the variables stay unchanged.

        :param step: step of the checkpoint.
        :raises VolumeError: it cannot be read.
        """
        self._copied = None
        try:
            read_model(self._copy, checkpoint, self._io_device)
        except tf.errors.OpError as error:
            raise VolumeError(
                f"{checkpoint} cannot be read ({str(error).splitlines()[0]}).",
                "Set patience to 0 to continue from the last checkpoint, or start over with workloads_state=restarted.",
            ) from error
        self._copied = step

    def export(self, step: int) -> Path:
        """Export the model, and return its folder.

        :param step: number of applied steps, or that of the checkpoint that was taken.
        :raises VolumeError: the run's folder cannot be written.
        :raises StalledError: another chief has taken over.
        """
        self._fetch(step)
        self._folder.require_held()
        export(self._copy, self._folder.export, self._io_device)
        return self._folder.export

    def _fetch(self, step: int) -> None:
        if self._copied != step:
            copy(self._copy, self._model)
            self._copied = step
