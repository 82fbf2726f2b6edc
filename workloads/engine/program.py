"""One process of the training: its role, its exit code, and its error reports."""

from __future__ import annotations

import functools
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from engine import compat, runtime
from engine.cluster import devices, membership, peers
from engine.cluster.cluster_spec import Cluster, parse
from engine.cluster.membership import LEAVING, LOST, Listener
from engine.cluster.preemption import Preemption
from engine.cluster.watchdog import Watchdog
from engine.config import Config
from engine.errors import DivergedError, ExitCode, InputError, StalledError, unwritable
from engine.run.metrics import MetricsLog
from engine.run.run_folder import Attempt, RunFolder
from engine.run.run_lease import Lease
from engine.workload import Workload

_DETAIL_CHARACTERS = 600
"""Maximum length of an exception's text; the whole traceback goes to standard error."""

_EVALUATOR_PAUSE_SECONDS = 30
"""Pause between two tries of an evaluator that fails."""

_ENVIRONMENT = {
    # A call to a missing task fails at once instead of waiting, so that the coordinator can give it to another.
    "GRPC_FAIL_FAST": "use_caller",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}


def run(
    make_config: type[Config], make_workload: Callable[[Any], Workload], flags: Mapping[str, Any], started: float
) -> int:
    """Run this process's role to its end and return the exit code; a chief and a stopped server do not return.

    :param make_config: config class of the workload.
    :param make_workload: creates the workload from its config; called on the chief and on workers.
    :param flags: values for the config.
    :param started: start time of the process, seconds since the epoch.
    """
    log = MetricsLog()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    cluster: Cluster | None = None
    try:
        config = make_config(**flags)
        cluster = parse(os.environ.get("TF_CONFIG"))
        if cluster.role == "evaluator":
            _leave(_evaluator(config, make_workload))
        peers.require_free(cluster.address)
        if cluster.role == "chief":
            peers.require_free(cluster.address, membership.port(cluster))
            preemption = Preemption()
            folder = RunFolder(config.log_dir, config.attempt, functools.partial(_overtaken, log))
            log = MetricsLog(folder.attempt.folder)
            # Exit without TensorFlow's tear-down, which waits for servers that are being stopped at the same moment.
            _leave(_chief(config, make_workload, cluster, log, preemption, folder, started))
        _server(config, make_workload, cluster, log)
    except InputError as error:
        _leave(_failed(log, error.code, error.message, remedy=error.remedy))
    except StalledError as error:
        _leave(_failed(log, ExitCode.STALLED, str(error)))
    except DivergedError as error:
        _leave(_failed(log, ExitCode.DIVERGED, str(error), remedy=error.remedy))
    except Exception as error:
        traceback.print_exc()
        _leave(_broken(log, cluster, error))
    return ExitCode.UNEXPECTED


def _overtaken(log: MetricsLog, why: str) -> None:
    _leave(_failed(log, ExitCode.STALLED, f"This chief was considered lost: {why}."))


def _chief(
    config: Config,
    make_workload: Callable[[Any], Workload],
    cluster: Cluster,
    log: MetricsLog,
    preemption: Preemption,
    folder: RunFolder,
    started: float,
) -> ExitCode:

    def stalled(known: dict[str, Any]) -> None:
        away = peers.unreachable(cluster.peers("ps", "worker"))
        log.emit("error", code=int(ExitCode.STALLED), message="No progress.", unreachable=away, **known)
        folder.release()

    def peer_changed(task: str, state: str, why: str) -> None:
        """Handle a change of a peer. Nothing can be saved without a ps; the run continues without a worker."""
        log.emit("peer", task=task, state=state, why=why)
        if task.startswith("ps") and state == LEAVING:
            preemption.request()
        if task.startswith("ps") and state == LOST:
            folder.release()
            _leave(_failed(log, ExitCode.STALLED, f"Lost {task}: {why}.", unreachable={task: why}))

    watchdog = Watchdog(config.stall_timeout, stalled)
    watchdog.start()
    listener = Listener(cluster, peer_changed, lambda: preemption.requested)
    listener.start()
    log.emit(
        "start", role="chief", address=cluster.address, train_steps=config.train_steps, batch_size=config.batch_size
    )
    watchdog.beat("importing TensorFlow")
    from engine.loop import train

    _check_versions()
    finished = False
    try:
        code = train.train(
            _checked(make_workload(config)), cluster, log, watchdog, preemption, listener, folder, started
        )
        # Otherwise the next chief of the run needs the servers.
        finished = code in (ExitCode.TRAINED, ExitCode.BOUND_NOT_REACHED)
        return code
    finally:
        listener.stop(finished=finished)
        folder.release()


def _evaluator(config: Config, make_workload: Callable[[Any], Workload]) -> ExitCode:
    """Judge until the run has ended. A failure does not fail the run: it is reported, and retried later."""
    preemption = Preemption()
    seat = Lease(config.log_dir / "evaluator", _replaced)
    try:
        seat.acquire()
    except OSError as error:
        raise unwritable(config.log_dir, error) from error
    preemption.defer(lambda: _vacate(seat))
    attempt = Attempt(config.log_dir, config.attempt)
    log = MetricsLog(attempt.folder, name="evaluator.jsonl")

    def stalled(known: dict[str, Any]) -> None:
        log.emit("error", code=int(ExitCode.STALLED), message="No progress.", **known)

    watchdog = Watchdog(config.stall_timeout, stalled)
    watchdog.start()
    log.emit("start", role="evaluator")
    while True:
        try:
            watchdog.beat("importing TensorFlow")
            attempt.announce_evaluator()
            from engine.loop import evaluate

            _check_versions()
            code = evaluate.follow(make_workload(config), attempt, log, watchdog)
            break
        except Exception as error:
            attempt.withdraw_evaluator()
            traceback.print_exc()
            detail = f"{type(error).__name__}: {str(error)[-_DETAIL_CHARACTERS:]}"
            log.emit("error", message=detail, again_seconds=_EVALUATOR_PAUSE_SECONDS)
        for _ in range(_EVALUATOR_PAUSE_SECONDS):
            watchdog.beat("waiting to try again")
            time.sleep(1)
            if attempt.ended:
                break
    watchdog.stop()
    seat.release()
    return code


def _replaced(why: str) -> None:
    """End this evaluator, because another has replaced it: two would write the same files."""
    print(f"This evaluator was considered lost: {why}.", file=sys.stderr)
    _leave(ExitCode.PREEMPTED)


def _vacate(seat: Lease) -> None:
    """Release the folder and end. An evaluator has nothing to save: it writes each result at once."""
    seat.release()
    _leave(ExitCode.PREEMPTED)


def _server(config: Config, make_workload: Callable[[Any], Workload], cluster: Cluster, log: MetricsLog) -> None:
    preemption = Preemption()
    import tensorflow as tf

    from engine.cluster.server import serve

    _check_versions()
    device: dict[str, Any] = {}
    if cluster.role == "worker":
        device = devices.compute(tf, require_gpu=config.require_gpu.lower())
        _checked(make_workload(config))
    log.emit("start", role=cluster.role, index=cluster.index, address=cluster.address, **device)
    serve(cluster, preemption, device)


def _checked(workload: Workload) -> Workload:
    """Return the workload if its data has enough examples for a step."""
    size, count = workload.config.batch_size, workload.data.count
    if size > count:
        raise InputError(f"batch_size is {size}, but there are {count} training examples.", f"Set it to 1 to {count}.")
    return workload


def _check_versions() -> None:
    import tensorflow as tf

    compat.check(compat.Combination("parameter_server", "custom", "none", **runtime.versions(tf)))


def _broken(log: MetricsLog, cluster: Cluster | None, error: Exception) -> ExitCode:
    """Report an exception. A lost parameter server may raise one, which is a stall that was detected early."""
    import tensorflow as tf

    detail = f"{type(error).__name__}: {str(error)[-_DETAIL_CHARACTERS:]}"
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
    if cluster is None or not isinstance(error, lost):
        return _failed(log, ExitCode.UNEXPECTED, detail)
    away = peers.unreachable(cluster.peers("ps", "worker"))
    message = f"Lost {', '.join(away) or 'a task that has returned'}."
    return _failed(log, ExitCode.STALLED, message, unreachable=away, detail=detail)


def _failed(log: MetricsLog, code: ExitCode, message: str, **fields: Any) -> ExitCode:
    log.emit("error", code=int(code), message=message, **fields)
    print(message, fields.get("remedy", ""), file=sys.stderr, flush=True)
    return code


def _leave(code: ExitCode) -> NoReturn:
    """End the process without waiting for threads: some may hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))
