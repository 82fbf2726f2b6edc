"""Run a program and measure its time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from inputs import ROOT


class BenchError(Exception):
    """A run that did not do the measured work; the message names the log."""


def timed(
    argv: list[str],
    log: Path,
    limit: float,
    *,
    env: dict[str, str] | None = None,
    given: Path | None = None,
    cwd: Path = ROOT,
) -> float:
    """Run a command with its output in `log`, and return its seconds.

    :param given: file for its standard input.
    :param cwd: working folder.
    :raises BenchError: it fails, or takes longer than `limit`; then its whole process group is ended.
    """
    started = time.monotonic()
    with log.open("ab") as stream, open(given or os.devnull, "rb") as stdin:
        process = subprocess.Popen(
            argv, stdout=stream, stderr=subprocess.STDOUT, stdin=stdin, cwd=cwd, start_new_session=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        try:
            code = process.wait(timeout=limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise BenchError(f"{argv[0]} took longer than {limit:.0f} s; log: {log}") from error
            raise
    if code != 0:
        raise BenchError(f"{argv[0]} ended with {code}; log: {log}")
    return time.monotonic() - started
