"""What a training says: JSON lines for programs, TensorBoard events for people."""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from lib.errors import InputError


class MetricsLog:
    """One JSON object per line on standard output and, on the chief, appended to `metrics.jsonl` and TensorBoard.

    :param log_dir: directory of the logs volume, made if missing and never emptied; None for standard
        output only.
    :param stream: stands in for standard output in tests.
    :raises InputError: the directory cannot be written.
    """

    def __init__(self, log_dir: Path | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        self._events: EventFile | None = None
        self._log_dir = log_dir
        if log_dir is not None:
            try:
                log_dir.mkdir(parents=True, exist_ok=True)
                self._file = (log_dir / "metrics.jsonl").open("a", encoding="utf-8")
            except OSError as error:
                raise InputError(
                    f"log_dir {log_dir} cannot be written ({error.strerror}).",
                    f"Make it writable for user {os.getuid()}.",
                ) from error

    def emit(self, event: str, **fields: Any) -> None:
        """Write one line: `event`, `time` in seconds since the epoch, and the fields; not-a-number becomes null."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **{k: _plain(v) for k, v in fields.items()}})
        with self._lock:
            for stream in (self._stream, self._file):
                if stream is not None:
                    stream.write(line + "\n")
                    stream.flush()

    def scalars(self, step: int, **values: float) -> None:
        """Write TensorBoard scalars; the first call opens the event file (it needs TensorFlow)."""
        if self._log_dir is None:
            return
        if self._events is None:
            self._events = EventFile(self._log_dir / "tensorboard")
        self._events.scalars(step, values)


class EventFile:
    """A TensorBoard event file.

    Written as records directly: TensorBoard is no longer a dependency of TensorFlow, and `tf.summary` would place its
    operations on the cluster.

    :param directory: made if missing; every process writes a file of its own.
    """

    def __init__(self, directory: Path) -> None:
        import tensorflow as tf

        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self._writer = tf.io.TFRecordWriter(str(directory / name))
        self._write(file_version="brain.Event:2")

    def scalars(self, step: int, values: dict[str, float]) -> None:
        from tensorflow.core.framework.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._write(step=step, summary=summary)

    def _write(self, **fields: Any) -> None:
        from tensorflow.core.util.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **fields).SerializeToString())
        self._writer.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
