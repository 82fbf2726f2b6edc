"""SIGTERM, which a node drain or an eviction sends some seconds before the kill."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from engine.errors import ExitCode

GRACE_SECONDS = 20.0
"""Total time from SIGTERM to the end of the process; less than the 30 s that Kubernetes grants by default."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Preemption:
    """The request to end this process. Without anything to save it ends the process at once, with 42.

    A thread waits for the signal. Python runs signal handlers only between two steps of the main thread, which may be
    blocked inside TensorFlow by a lost task. Create it before TensorFlow is imported: threads that exist already would
    still take the signal, and process 1 of a container ignores unexpected signals.
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
        """Defer the end: from now on there is something to save, and the training loop checks `requested`.

        :param on_request: called once, in another thread, on the signal or the request.
        """
        self._on_request = on_request

    def request(self) -> None:
        """Request the end of this process, as the signal does; repeated requests have no effect."""
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
