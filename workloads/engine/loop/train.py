"""The chief: hands out steps, saves, evaluates, and gives the verdict."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from engine.cluster import peers
from engine.cluster.cluster_spec import Cluster
from engine.cluster.membership import Listener
from engine.cluster.preemption import GRACE_SECONDS, Preemption
from engine.cluster.watchdog import Watchdog
from engine.errors import DivergedError, ExitCode
from engine.loop.evaluation import Judge, ToldToStop
from engine.loop.sharding import partitioner
from engine.loop.state import State
from engine.loop.step_scheduler import CALLS_PER_WORKER, Call, Calls, Dispatcher, Ended, Pace
from engine.run.metrics import Benchmark, MetricsLog, Progress
from engine.run.run_folder import RunFolder
from engine.workload import Workload

CHIEF_DEVICE = "/job:chief/replica:0/task:0/device:CPU:0"
"""TensorFlow's name of a chief's device, which writes all files, because a ps has no volume."""
_LOOK_SECONDS = 0.2
"""Interval between two checks for a request to end, while no call ends."""
_KEPT: list[_Training] = []
"""Objects kept until the process ends. When Python frees a function, TensorFlow removes it from all workers, with the
interpreter locked; a chief was blocked there for ever after a worker had hung and come back."""


def train(
    workload: Workload,
    cluster: Cluster,
    log: MetricsLog,
    watchdog: Watchdog,
    preemption: Preemption,
    listener: Listener,
    folder: RunFolder,
    started: float,
) -> ExitCode:
    """Train to the configured step, evaluate, and compare with the bound.

    :param folder: the run's folder, held by this chief.
    :param listener: knows which tasks have connected.
    :param started: start time of the process, seconds since the epoch.
    :raises DivergedError: a loss or a parameter is not finite; nothing is saved.
    :raises InputError: the run's checkpoints do not fit.
    :raises VolumeError: the run's folder cannot be written, or its checkpoints cannot be read.
    :raises StalledError: a ps or worker does not connect, or steps do not come back.
    """
    servers = cluster.peers("ps", "worker")
    waiting = functools.partial(watchdog.beat, "waiting for parameter servers and workers")
    peers.wait_for(servers, workload.config.start_timeout, listener.missing, waiting)
    log.emit("device", **listener.computes())
    watchdog.beat("connecting")
    training = _Training(workload, cluster, log, watchdog, preemption, folder)
    _KEPT.append(training)
    # From now on the parameter servers hold the variables, and their port is in use.
    log.emit("connected", peers=servers, bytes=training.bytes_held)
    try:
        training.restore()
        preemption.defer(lambda: watchdog.shorten(GRACE_SECONDS))
        if not training.finished:
            training.loop()
        training.save()
        return ExitCode.PREEMPTED if preemption.requested else training.conclude(started, listener.computes())
    except ToldToStop:
        return ExitCode.PREEMPTED


def _connect(cluster: Cluster) -> tuple[tf.distribute.Strategy, Any]:
    """Return the strategy that places the variables, and the coordinator that sends calls to the workers."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.tensorflow_spec(), task_type="chief", task_id=0, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner(len(cluster.addresses["ps"])))
    return strategy, tf.distribute.coordinator.ClusterCoordinator(strategy)


class _Training:
    """State of one run on the chief."""

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        log: MetricsLog,
        watchdog: Watchdog,
        preemption: Preemption,
        folder: RunFolder,
    ) -> None:
        self._config, self._data = workload.config, workload.data
        self._log, self._watchdog, self._preemption, self._folder = log, watchdog, preemption, folder
        strategy, self._coordinator = _connect(cluster)
        self._lanes = CALLS_PER_WORKER * len(cluster.addresses["worker"])
        self._state = State(workload, strategy, self._lanes, folder, CHIEF_DEVICE)
        self.bytes_held = self._state.bytes_held
        self._repeated = 0
        self._judge = Judge(workload.config.patience, self._state, folder, log, watchdog, preemption)
        self._saved: tuple[int, str] = (-1, "")
        self._start = self._step = 0
        self._loop_seconds = 0.0

    @property
    def finished(self) -> bool:
        return self._all_done or self._judge.out_of_patience

    @property
    def _all_done(self) -> bool:
        return bool(self._config.train_steps) and self._step >= self._config.train_steps

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one.

        If the previous chief ended between a checkpoint and its evaluation, this one evaluates it, and checks the
        patience.
        """
        self._watchdog.beat("restoring")
        path = self._state.restore()
        if path is not None:
            self._start = self._step = int(self._state.counters.global_step.numpy())
            self._saved = (self._step, path)
            self._log.emit("restore", step=self._step, path=path)
            self._judge.look(*self._saved)

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it is the one saved last. No step may be pending."""
        if self._saved[0] == self._step:
            return
        self._watchdog.beat("saving", self._step)
        # The event explains to readers of the log why no steps follow for a while.
        self._log.emit("saving", step=self._step)
        path = self._state.save(self._step)
        self._saved = (self._step, path)
        self._log.emit("checkpoint", step=self._step, path=path)

    def loop(self) -> None:
        """Hand out and collect steps until the target is reached or the process is asked to end."""
        config = self._config
        dispatcher = Dispatcher(
            self._start, config.train_steps, self._lanes, (config.report_every,), config.checkpoint_every
        )
        dispatcher.pass_barrier()
        pace = Pace(self._lanes // CALLS_PER_WORKER, config.steps_per_dispatch)
        progress = Progress(self._log, config.report_every, config.train_steps, self._start)
        benchmark = Benchmark(self._log, config.benchmark_steps, config.batch_size)
        begun = counted = time.monotonic()
        self._watchdog.beat("training", self._step)
        # Not a local variable: see `_KEPT`.
        self._examples = iter(self._coordinator.create_per_worker_dataset(self._data.source))
        calls = Calls(dispatcher, pace, self._schedule, config.stall_timeout)
        while True:
            if not self._preemption.requested:
                calls.hand_out()
            if dispatcher.pending:
                if ended := calls.take_in(_LOOK_SECONDS):
                    total, done = self._result(ended)
                    self._step = dispatcher.collected
                    self._watchdog.beat("training", self._step)
                    progress.add(self._step, total, done)
                    benchmark.add(done, time.monotonic() - counted)
                    counted = time.monotonic()
                continue
            self._settle()
            if self._preemption.requested or dispatcher.finished or not dispatcher.at_barrier:
                break
            self.save()
            self._judge.look(*self._saved)
            if self._judge.out_of_patience:
                break
            self._watchdog.beat("training", self._step)
            dispatcher.pass_barrier()
            counted = time.monotonic()
        self._loop_seconds = time.monotonic() - begun

    def _schedule(self, call: Call) -> Any:
        numbers = [tf.constant(number, tf.int64) for number in (call.lane, call.first, call.count)]
        return self._coordinator.schedule(self._state.train_call, args=(self._examples, *numbers))

    def _result(self, ended: Ended) -> tuple[float, int]:
        """Return the sum of the losses of a finished call, and the number of its steps."""
        call = ended.call
        if ended.error is None:
            total, done = float(ended.values[0]), int(ended.values[1])
            if not math.isfinite(total):
                raise DivergedError(f"The loss of the steps {call.first} to {call.first + call.count - 1} is {total}.")
            return total, done
        # The values of a finished call stay on its worker until they are fetched; they are lost if the worker dies in
        # between. The mark on the parameter server tells whether the steps were done.
        lost = isinstance(ended.error, tf.errors.UnavailableError | tf.errors.AbortedError)
        if lost and int(self._state.counters.next_step.numpy()[call.lane]) >= call.first + call.count:
            return 0.0, 0
        raise ended.error

    def _settle(self) -> None:
        """Compare the counter on the parameter server with the returned steps. No step may be pending."""
        applied = int(self._state.counters.global_step.numpy())
        if applied < self._step:
            raise RuntimeError(f"{self._step} steps were reported, but only {applied} were applied.")
        self._repeated += applied - self._step
        self._state.counters.global_step.assign(self._step)

    def conclude(self, started: float, device: Mapping[str, Any]) -> ExitCode:
        """Evaluate the saved model, and give the verdict.

        :param device: device that the workers compute on.
        :raises ToldToStop: the process was asked to end before the verdict.
        """
        early = self._judge.out_of_patience and not self._all_done
        step, accuracy = self._judge.result(*self._saved, early=early)
        bound = self._config.accuracy_bound
        code = ExitCode.BOUND_NOT_REACHED if bound and accuracy < bound else ExitCode.TRAINED
        if code == ExitCode.TRAINED:
            self._judge.begin("exporting", self._step)
            self._log.emit("export", step=step, path=str(self._state.export(step)))
        self._log.emit(
            "end",
            step=self._step,
            steps_total=self._config.train_steps,
            steps_repeated=self._repeated,
            stopped_early=early,
            seconds=time.time() - started,
            steps_per_second=(self._step - self._start) / self._loop_seconds if self._loop_seconds else 0.0,
            accuracy=accuracy,
            accuracy_step=step,
            accuracy_bound=bound,
            result="no_bound" if not bound else "passed" if code == ExitCode.TRAINED else "failed",
            **device,
        )
        self._folder.attempt.finish()
        self._watchdog.stop()
        return code
