"""Processes that start with TensorFlow imported, for tests: its import takes each of them three seconds of a core.

python -m tests.trainings.preloaded      # imports it, and forks itself for each line of JSON
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.05


class Preloaded:
    """A process `python -m MODULE ARGUMENTS`, with the methods of `subprocess.Popen` that tests use.

    :param environment: added to that of this process.
    :param output: file to which both streams are appended.
    """

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        told = {**os.environ, **environment}
        self.pid: int = _ask({"module": module, "arguments": arguments, "environment": told, "output": str(output)})
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or the negative number of the signal that ended it; None while it runs."""
        if self.returncode is None:
            self.returncode = _ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        """Return the exit status when the process has ended.

        :param timeout: seconds.
        :raises subprocess.TimeoutExpired: it runs longer.
        """
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(_POLL_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        # An ended process keeps its process id until its status is read.
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _server() -> tuple[IO[str], IO[str]]:
    """Return the pipes to and from the process that imports TensorFlow once; it ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.trainings.preloaded"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'workloads'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    atexit.register(process.communicate)
    return process.stdin, process.stdout


def _ask(question: dict[str, Any]) -> Any:
    asked, answered = _server()
    print(json.dumps(question), file=asked, flush=True)
    return json.loads(answered.readline())


def _serve() -> None:
    import tensorflow  # noqa: F401

    for line in sys.stdin:
        question = json.loads(line)
        if "ended" in question:
            ended, status = os.waitpid(question["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        elif not (answer := os.fork()):
            _run(**question)
        print(json.dumps(answer), flush=True)


def _run(module: str, arguments: list[str], environment: dict[str, str], output: str) -> None:
    """Become the program; it ends as if Python had started it."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _serve()
