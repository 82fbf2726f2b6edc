"""The output of a training: JSON lines for programs, TensorBoard events for people."""

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

from lib.errors import unwritable


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
