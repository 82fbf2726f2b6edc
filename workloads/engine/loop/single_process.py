"""Train in one process, on the device that it finds, without parameter servers and TF_CONFIG."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from engine import compat, runtime
from engine.cluster import devices
from engine.cluster.preemption import GRACE_SECONDS, Preemption
from engine.cluster.watchdog import Watchdog
from engine.config import Alone
from engine.errors import DivergedError, ExitCode, InputError, StalledError
from engine.run.metrics import Benchmark, MetricsLog, Progress
from engine.run.run_folder import RunFolder
from engine.workload import Workload

LOCAL_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
"""TensorFlow's name of the device of a single process."""


def run(
    make_config: type[Alone], make_workload: Callable[[Any], Workload], flags: Mapping[str, Any], started: float
) -> int:
    """Train to the end and return the exit code.

    :param make_config: config class of the workload.
    :param make_workload: creates the workload from its config.
    :param flags: values for the config.
    :param started: start time of the process, seconds since the epoch.
    """
    log = MetricsLog()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    try:
        config = make_config(**flags)
        preemption = Preemption()
        folder = RunFolder(config.log_dir, config.attempt, functools.partial(_overtaken, log))
        log = MetricsLog(folder.attempt.folder)
        try:
            return _train(config, make_workload, log, preemption, folder, started)
        finally:
            folder.release()
    except InputError as error:
        log.emit("error", code=int(error.code), message=error.message, remedy=error.remedy)
        return error.code
    except DivergedError as error:
        log.emit("error", code=int(ExitCode.DIVERGED), message=str(error), remedy=error.remedy)
        return ExitCode.DIVERGED
    except StalledError as error:
        log.emit("error", code=int(ExitCode.STALLED), message=str(error))
        return ExitCode.STALLED


def _overtaken(log: MetricsLog, why: str) -> None:
    log.emit("error", code=int(ExitCode.STALLED), message=f"This process was considered lost: {why}.")
    os._exit(int(ExitCode.STALLED))


def _train(
    config: Alone,
    make_workload: Callable[[Any], Workload],
    log: MetricsLog,
    preemption: Preemption,
    folder: RunFolder,
    started: float,
) -> ExitCode:
    def stalled(known: dict[str, Any]) -> None:
        log.emit("error", code=int(ExitCode.STALLED), message="No progress.", **known)
        folder.release()

    watchdog = Watchdog(config.stall_timeout, stalled)
    watchdog.start()
    log.emit("start", role="chief", train_steps=config.train_steps, batch_size=config.batch_size)
    watchdog.beat("importing TensorFlow")
    import tensorflow as tf

    compat.check(compat.Combination("single", "custom", "none", **runtime.versions(tf)))
    device = devices.compute(tf, require_gpu=config.require_gpu.lower())
    log.emit("device", **device)
    training = _Training(make_workload(config), log, watchdog, preemption, folder)
    training.restore()
    preemption.defer(lambda: watchdog.shorten(GRACE_SECONDS))
    training.loop()
    training.save()
    if preemption.requested:
        return ExitCode.PREEMPTED
    code = training.conclude(started, device)
    watchdog.stop()
    return code


class _Training:
    """State of one run."""

    def __init__(
        self, workload: Workload, log: MetricsLog, watchdog: Watchdog, preemption: Preemption, folder: RunFolder
    ) -> None:
        import tensorflow as tf

        from engine.loop.state import State

        self._tf, self._workload, self._config = tf, workload, workload.config
        self._log, self._watchdog, self._preemption, self._folder = log, watchdog, preemption, folder
        if self._config.batch_size > workload.data.count:
            raise InputError(
                f"batch_size is {self._config.batch_size}, but there are {workload.data.count} training examples.",
                f"Set it to 1 to {workload.data.count}.",
            )
        self._state = State(workload, tf.distribute.get_strategy(), 1, folder, LOCAL_DEVICE)
        self._step = self._start = 0
        self._saved = -1
        self._judged = (-1, 0.0)
        self._seconds = 0.0

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one."""
        self._watchdog.beat("restoring")
        path = self._state.restore()
        if path is not None:
            self._step = self._start = self._saved = int(self._state.counters.global_step.numpy())
            self._log.emit("restore", step=self._step, path=path)

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it exists."""
        if self._saved != self._step:
            self._watchdog.beat("saving", self._step)
            self._log.emit("saving", step=self._step)
            self._log.emit("checkpoint", step=self._step, path=self._state.save(self._step))
            self._saved = self._step

    def loop(self) -> None:
        """Train, with an evaluation every `report_every` steps and a checkpoint every `checkpoint_every`."""
        config = self._config
        progress = Progress(self._log, config.report_every, config.train_steps, self._start)
        benchmark = Benchmark(self._log, config.benchmark_steps, config.batch_size)
        examples = iter(self._workload.data.source())
        begun = time.monotonic()
        while not self._preemption.requested and (self._step < config.train_steps or not config.train_steps):
            self._watchdog.beat("training", self._step)
            count = self._until_next_stop()
            numbers = [self._tf.constant(number, self._tf.int64) for number in (0, self._step, count)]
            called = time.monotonic()
            total, done = self._state.train_call(examples, *numbers)
            loss = float(total)
            benchmark.add(int(done), time.monotonic() - called)
            if not math.isfinite(loss):
                raise DivergedError(f"The loss of the steps {self._step} to {self._step + count - 1} is {loss}.")
            self._step += int(done)
            progress.add(self._step, loss, int(done))
            if self._step % config.report_every == 0:
                self._accuracy()
            if config.checkpoint_every and self._step % config.checkpoint_every == 0:
                self.save()
        self._seconds = time.monotonic() - begun

    def _until_next_stop(self) -> int:
        """Return the steps of the next call: up to the next report, checkpoint or end, whichever comes first."""
        config = self._config
        every = [config.report_every, *([config.checkpoint_every] if config.checkpoint_every else [])]
        ends = [config.train_steps - self._step] if config.train_steps else []
        return min(*(each - self._step % each for each in every), *ends, config.steps_per_dispatch)

    def _accuracy(self) -> float:
        """Return the held-out accuracy at the current step."""
        if self._judged[0] != self._step:
            self._log.emit("evaluating", step=self._step)
            score = self._state.score(self._step, lambda: self._watchdog.beat("evaluating", self._step))
            self._log.emit("evaluate", step=self._step, **score.figures, examples=score.examples)
            self._log.scalars("eval", self._step, **score.figures)
            self._judged = (self._step, score.accuracy)
        return self._judged[1]

    def conclude(self, started: float, device: Mapping[str, Any]) -> ExitCode:
        """Compare with the bound, and give the verdict; a model that passed is exported."""
        accuracy, bound = self._accuracy(), self._config.accuracy_bound
        code = ExitCode.BOUND_NOT_REACHED if bound and accuracy < bound else ExitCode.TRAINED
        if code == ExitCode.TRAINED:
            self._watchdog.beat("exporting", self._step)
            self._log.emit("export", step=self._step, path=str(self._state.export(self._step)))
        self._log.emit(
            "end",
            step=self._step,
            steps_total=self._config.train_steps,
            seconds=time.time() - started,
            steps_per_second=(self._step - self._start) / self._seconds if self._seconds else 0.0,
            accuracy=accuracy,
            accuracy_bound=bound,
            result="no_bound" if not bound else "passed" if code == ExitCode.TRAINED else "failed",
            **device,
        )
        self._folder.attempt.finish()
        return code
