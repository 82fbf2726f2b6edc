"""The chief: hands out steps, saves, evaluates, and gives the verdict."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from lib import peers
from lib.calls import Calls, Ended
from lib.checkpoint import ChiefCheckpoint
from lib.cluster_spec import Cluster
from lib.dispatch import Call, Dispatcher
from lib.errors import DivergedError, ExitCode
from lib.listener import Listener
from lib.metrics import MetricsLog
from lib.pace import CALLS_PER_WORKER, Pace
from lib.preemption import GRACE_SECONDS, Preemption
from lib.progress import Progress
from lib.run_folder import RunFolder
from lib.watchdog import Watchdog
from training.mnist_ps import data
from training.mnist_ps.config import Config
from training.mnist_ps.evaluate import evaluate
from training.mnist_ps.model import Classifier
from training.mnist_ps.optimizer import Adam
from training.mnist_ps.step import Counters, make_train_call

_CHIEF_DEVICE = "/job:chief/replica:0/task:0/device:CPU:0"

_LOOK_SECONDS = 0.2
"""Between two looks at whether the process was asked to end, while no call ends."""


def train(
    config: Config,
    cluster: Cluster,
    log: MetricsLog,
    watchdog: Watchdog,
    preemption: Preemption,
    listener: Listener,
    folder: RunFolder,
    started: float,
) -> ExitCode:
    """Train to the configured step, evaluate, and compare with the bound.

    :param folder: the run's, held by this chief.
    :param listener: knows who has called.
    :param started: when the process started, seconds since the epoch.
    :raises DivergedError: a loss or a parameter is not finite; nothing is saved.
    :raises InputError: the run's folder cannot be written, or its checkpoints do not fit.
    :raises StalledError: a ps or worker does not come, or steps do not come back.
    """
    files = data.find(config.data_dir)
    servers = cluster.peers("ps", "worker")
    waiting = functools.partial(watchdog.beat, "waiting for parameter servers and workers")
    peers.wait_for(servers, config.start_timeout, listener.missing, waiting)
    watchdog.beat("connecting")
    training = _Training(config, cluster, files, log, watchdog, folder)
    # From here to the end the parameter servers' port is in use: the variables lie there.
    log.emit("connected", peers=servers)
    training.restore()
    preemption.defer(lambda: watchdog.shorten(GRACE_SECONDS))
    training.loop(preemption)
    if preemption.requested and not training.finished:
        training.save()
        return ExitCode.PREEMPTED
    return training.conclude(started)


class _Training:
    """State of one run on the chief."""

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        files: data.Mnist,
        log: MetricsLog,
        watchdog: Watchdog,
        folder: RunFolder,
    ) -> None:
        self._config, self._log, self._watchdog, self._folder = config, log, watchdog, folder
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster.tensorflow_spec(), task_type="chief", task_id=0, rpc_layer="grpc"
        )
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._lanes = CALLS_PER_WORKER * len(cluster.addresses["worker"])
        with strategy.scope():
            self._model = Classifier(config.hidden_units, config.seed)
            adam = Adam(self._model.parameters(), strategy, config.learning_rate)
            self._counters = Counters(self._lanes)
        self._call = make_train_call(self._model, adam, self._counters, config, files.train_count)
        kind = {"model": f"dense {config.hidden_units}", "optimizer": "adam", "examples": files.train_count}
        self._checkpoint = ChiefCheckpoint(
            folder.save_to,
            folder.open(kind, config.train_steps, config.resume),
            _CHIEF_DEVICE,
            model=self._model,
            adam=adam,
            global_step=self._counters.global_step,
        )
        self._files = files
        self._test_set = data.test_set(files)
        self._repeated = 0
        self._saved: int | None = None
        self._evaluated: tuple[int, float] | None = None
        self._start = self._step = 0
        self._loop_seconds = 0.0

    @property
    def finished(self) -> bool:
        return bool(self._config.train_steps) and self._step >= self._config.train_steps

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one."""
        self._watchdog.beat("restoring")
        path = self._checkpoint.restore()
        if path is not None:
            self._start = self._step = self._saved = int(self._counters.global_step.numpy())
            self._log.emit("restore", step=self._step, path=path)

    def save(self) -> None:
        """Write a checkpoint of the present step, unless it is the one saved last. No step may be under way.

        :raises DivergedError: a parameter is not finite.
        :raises InputError: the run's folder cannot be written, a full volume most likely.
        :raises StalledError: another chief has taken over.
        """
        if self._saved == self._step:
            return
        self._watchdog.beat("saving", self._step)
        # The last step's update is seen by no loss yet.
        for parameter in self._model.parameters():
            if not tf.reduce_all(tf.math.is_finite(parameter)):
                raise DivergedError(f"After step {self._step}, {parameter.name.split(':')[0]} is not finite.")
        path = self._checkpoint.save(self._step)
        self._folder.require_held()
        self._folder.prune()
        self._saved = self._step
        self._log.emit("checkpoint", step=self._step, path=path)

    def evaluate(self) -> float:
        """Held-out accuracy at the present step. No step may be under way."""
        if self._evaluated is None or self._evaluated[0] != self._step:
            self._watchdog.beat("evaluating", self._step)
            images, labels = self._test_set
            accuracy, loss = evaluate(self._model, images, labels)
            self._evaluated = (self._step, accuracy)
            self._log.emit("evaluate", step=self._step, accuracy=accuracy, loss=loss, examples=len(labels))
            self._log.scalars(self._step, **{"evaluate/accuracy": accuracy, "evaluate/loss": loss})
        return self._evaluated[1]

    def loop(self, preemption: Preemption) -> None:
        """Hand out and collect steps until the target is reached or the process is asked to end."""
        config = self._config
        dispatcher = Dispatcher(
            self._start, config.train_steps, self._lanes, (config.report_every,), config.checkpoint_every
        )
        dispatcher.pass_barrier()
        pace = Pace(self._lanes // CALLS_PER_WORKER, config.steps_per_dispatch)
        progress = Progress(self._log, config.report_every, config.train_steps, self._start)
        begun = time.monotonic()
        self._watchdog.beat("training", self._step)
        examples = iter(self._coordinator.create_per_worker_dataset(lambda: data.training_dataset(self._files)))
        calls = Calls(dispatcher, pace, functools.partial(self._schedule, examples), config.stall_timeout)
        while True:
            if not preemption.requested:
                calls.hand_out()
            if dispatcher.pending:
                if ended := calls.take_in(_LOOK_SECONDS):
                    total, done = self._result(ended)
                    self._step = dispatcher.collected
                    self._watchdog.beat("training", self._step)
                    progress.add(self._step, total, done)
                continue
            self._settle()
            if preemption.requested or dispatcher.finished or not dispatcher.at_barrier:
                break
            self.save()
            self.evaluate()
            self._watchdog.beat("training", self._step)
            dispatcher.pass_barrier()
        self._loop_seconds = time.monotonic() - begun

    def _schedule(self, examples: Iterator[Any], call: Call) -> Any:
        numbers = [tf.constant(number, tf.int64) for number in (call.lane, call.first, call.count)]
        return self._coordinator.schedule(self._call, args=(examples, *numbers))

    def _result(self, ended: Ended) -> tuple[float, int]:
        """What a call returned: the sum of its losses, and of how many steps."""
        call = ended.call
        if ended.error is None:
            total, done = float(ended.values[0]), int(ended.values[1])
            if not math.isfinite(total):
                raise DivergedError(f"The loss of the steps {call.first} to {call.first + call.count - 1} is {total}.")
            return total, done
        # The values of a call that has ended stay on its worker until they are fetched; a worker that dies in between
        # takes them along. The mark on the parameter server says whether the steps were done.
        lost = isinstance(ended.error, tf.errors.UnavailableError | tf.errors.AbortedError)
        if lost and int(self._counters.next_step.numpy()[call.lane]) >= call.first + call.count:
            return 0.0, 0
        raise ended.error

    def _settle(self) -> None:
        """With no step under way, compare the counter on the parameter server with the steps that came back."""
        applied = int(self._counters.global_step.numpy())
        if applied < self._step:
            raise RuntimeError(f"{self._step} steps were reported, but only {applied} were applied.")
        self._repeated += applied - self._step
        self._counters.global_step.assign(self._step)

    def conclude(self, started: float) -> ExitCode:
        """Save, evaluate and give the verdict. In this order: SIGTERM during a slow evaluation costs no step."""
        self.save()
        accuracy = self.evaluate()
        bound = self._config.accuracy_bound
        code = ExitCode.BOUND_NOT_REACHED if bound and accuracy < bound else ExitCode.TRAINED
        self._log.emit(
            "end",
            step=self._step,
            steps_total=self._config.train_steps,
            steps_repeated=self._repeated,
            seconds=time.time() - started,
            steps_per_second=(self._step - self._start) / self._loop_seconds if self._loop_seconds else 0.0,
            accuracy=accuracy,
            accuracy_bound=bound,
            result="no_bound" if not bound else "passed" if code == ExitCode.TRAINED else "failed",
        )
        self._watchdog.stop()
        return code
