"""SIGTERM: what a node drain or an eviction sends some seconds before it kills."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from lib.errors import ExitCode

GRACE_SECONDS = 20.0
"""From SIGTERM to the end of the process, in all; less than the 30 s that Kubernetes grants by default."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Preemption:
    """Remembers that the process was asked to end, or ends it at once with 42 while there is nothing to save.

    A thread waits for the signal, because Python runs signal handlers only between two steps of the main thread, and
    that one may be waiting inside TensorFlow for a task that is gone. Make it before TensorFlow is imported: threads
    that exist already would still take the signal, and process 1 of a container ignores signals it does
    not expect.
    """

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._lock = threading.Lock()
        self._on_request: Callable[[], None] | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._wait, name="preemption", daemon=True).start()

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    def defer(self, on_request: Callable[[], None]) -> None:
        """From now on there is something to save, and the training loop looks at `requested`.

        :param on_request: called once, in another thread, when the signal or the request comes.
        """
        self._on_request = on_request

    def request(self) -> None:
        """Ask this process to end, as the signal does; what comes later changes nothing."""
        with self._lock:
            if self._requested.is_set():
                return
            self._requested.set()
        if self._on_request is None:
            os._exit(int(ExitCode.PREEMPTED))
        self._on_request()

    def _wait(self) -> None:
        signal.sigwait(_SIGNALS)
        self.request()
