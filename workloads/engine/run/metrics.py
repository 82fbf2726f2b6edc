"""The output of a training: JSON lines for programs, TensorBoard events for people.

Progress lines of a training: mean loss and speed since the last one.

Measure the speed of a training after its warm-up.
"""

from __future__ import annotations

import errno
import json
import math
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from engine.errors import unwritable


class MetricsLog:
    """JSON lines on standard output; chief and evaluator also append them to a file and write TensorBoard events.

    :param log_dir: directory of the logs volume, created if missing and never emptied; None for standard output only.
    :param name: file name in it; only this process writes the file.
    :param stream: replaces standard output in tests.
    :raises VolumeError: the directory cannot be written. Later write errors are reported once, on standard error, and
        end nothing: a full volume is the next checkpoint's error, and reporting an error must not fail itself.
    """

    def __init__(self, log_dir: Path | None = None, stream: TextIO | None = None, name: str = "metrics.jsonl") -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        self._events: dict[str, EventFile] = {}
        self._log_dir = log_dir
        self._warned = False
        if log_dir is not None:
            try:
                log_dir.mkdir(parents=True, exist_ok=True)
                self._file = (log_dir / name).open("a", encoding="utf-8")
            except OSError as error:
                raise unwritable(log_dir, error) from error

    def emit(self, event: str, **fields: Any) -> None:
        """Write one line: `event`, `time` in seconds since the epoch, and the fields; not-a-number becomes null."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **{k: _plain(v) for k, v in fields.items()}})
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()
            if self._file is not None:
                try:
                    self._file.write(line + "\n")
                    self._file.flush()
                except OSError as error:
                    self._warn(error)

    def scalars(self, part: str, step: int, **values: float) -> None:
        """Write TensorBoard scalars; the first call opens the event file (it needs TensorFlow).

        :param part: folder of the events, such as `train`; TensorBoard plots equal names of several folders in one
            chart.
        """
        if self._log_dir is None:
            return
        try:
            if part not in self._events:
                self._events[part] = EventFile(self._log_dir / part, step)
            self._events[part].scalars(step, values)
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if self._log_dir is not None and not self._warned:
            self._warned = True
            print(unwritable(self._log_dir, error), file=sys.stderr, flush=True)


class EventFile:
    """A TensorBoard event file.

    Its records are written directly: TensorBoard is no longer a dependency of TensorFlow, and `tf.summary` would place
    its operations on the cluster.

    :param directory: created if missing; every process writes its own file.
    :param first: first step to write. TensorBoard then drops this and later steps of an earlier process, because they
        are repeated from a checkpoint.
    :raises OSError: the file cannot be written, here and in `scalars`.
    """

    def __init__(self, directory: Path, first: int) -> None:
        import tensorflow as tf
        from tensorflow.core.util.event_pb2 import SessionLog

        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        try:
            self._writer = tf.io.TFRecordWriter(str(directory / name))
        except tf.errors.OpError as error:
            raise os_error(error) from error
        self._write(file_version="brain.Event:2")
        self._write(step=first, session_log=SessionLog(status=SessionLog.START))

    def scalars(self, step: int, values: dict[str, float]) -> None:
        from tensorflow.core.framework.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._write(step=step, summary=summary)

    def _write(self, **fields: Any) -> None:
        import tensorflow as tf
        from tensorflow.core.util.event_pb2 import Event

        try:
            self._writer.write(Event(wall_time=time.time(), **fields).SerializeToString())
            self._writer.flush()
        except tf.errors.OpError as error:
            raise os_error(error) from error


def os_error(error: Any) -> OSError:
    """Convert TensorFlow's OpError about a file. Its own text is a page long if the operation was in a graph."""
    import tensorflow as tf

    meanings = {tf.errors.ResourceExhaustedError: errno.ENOSPC, tf.errors.PermissionDeniedError: errno.EACCES}
    number = meanings.get(type(error), errno.EIO)
    return OSError(number, os.strerror(number))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


class Progress:
    """A reporter that writes a line for each multiple of `every` steps.

    :param every: steps between two lines.
    :param total: steps to reach, 0 for no end.
    :param start: steps done before.
    """

    def __init__(self, log: MetricsLog, every: int, total: int, start: int) -> None:
        self._log, self._every, self._total = log, every, total
        self._reported, self._time = start, time.monotonic()
        self._loss, self._steps = 0.0, 0

    def add(self, step: int, loss: float, steps: int) -> None:
        """Count one call that has ended.

        :param step: total steps so far.
        :param loss: sum of the losses of the call's steps.
        :param steps: number of steps of the call.
        """
        self._loss += loss
        self._steps += steps
        if step // self._every == self._reported // self._every and step != self._total:
            return
        now = time.monotonic()
        speed = (step - self._reported) / max(now - self._time, 1e-6)
        mean = self._loss / self._steps if self._steps else float("nan")
        self._log.emit("step", step=step, steps_total=self._total, loss=mean, steps_per_second=speed)
        self._log.scalars("train", step, loss=mean, steps_per_second=speed)
        self._reported, self._time = step, now
        self._loss, self._steps = 0.0, 0


WARM_UP_STEPS = 10
"""Steps that are not timed: TensorFlow builds graphs in the first calls, and caches fill."""


class Benchmark:
    """A timer for some steps of this process, which emits one `benchmark` event.

    :param steps: steps to time; 0 disables the timer.
    :param batch_size: examples per step.
    """

    def __init__(self, log: MetricsLog, steps: int, batch_size: int) -> None:
        self._log, self._wanted, self._batch_size = log, steps, batch_size
        self._warm_up = WARM_UP_STEPS
        self._steps, self._seconds = 0, 0.0

    def add(self, steps: int, seconds: float) -> None:
        """Count steps that ended together. Whole calls are counted, so slightly more steps than requested may be timed.

        :param seconds: duration of these steps.
        """
        if not self._wanted:
            return
        if self._warm_up > 0:
            self._warm_up -= steps
            return
        self._steps += steps
        self._seconds += seconds
        if self._steps >= self._wanted:
            speed = self._steps / max(self._seconds, 1e-6)
            self._log.emit(
                "benchmark",
                steps=self._steps,
                seconds=self._seconds,
                steps_per_second=speed,
                examples_per_second=speed * self._batch_size,
            )
            self._wanted = 0
