"""The trained state: variables on the parameter servers, their checkpoints, and a copy of the model on the chief."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from engine.evaluate import Score, evaluate
from engine.export import export
from engine.optimizer import Adam
from engine.pieces import bytes_held
from engine.step import Counters, make_train_call
from engine.variables import copy, not_finite, require_tracked
from engine.workload import Workload
from lib.checkpoint import ChiefCheckpoint, read_model
from lib.data_digest import digest
from lib.errors import DivergedError, VolumeError
from lib.run_folder import RunFolder


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
