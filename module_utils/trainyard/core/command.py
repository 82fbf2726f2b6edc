"""Running programs: always bounded in time, never through a shell, failures as `CommandError`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from .errors import CommandError

LAST_LINES = 15
"""How many lines of a failed program's output an error quotes: enough for a Go or pip error with its context."""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    ok: Sequence[int] = (0,),
    outlives: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its result with text output.

    :param timeout: seconds after which the program and its children are killed.
    :param env: variables added to this process's environment.
    :param ok: exit statuses that are not an error.
    :param outlives: the program goes on to its end when this process is killed, as one that changes a host should;
        otherwise the kernel ends it then (SIGTERM).
    :raises CommandError: the program is missing, ended with another status, or ran out of time.
    """
    try:
        process = subprocess.Popen(
            list(argv) if outlives else ["setpriv", "--pdeathsig=TERM", "--", *argv],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"{argv[0]} cannot be started: {error.strerror}.") from error
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        raise CommandError(
            f"{' '.join(argv[:3])} did not end within {timeout:.0f} s: {_tail(out, err)}", argv=list(argv)
        ) from None
    if process.returncode not in ok:
        raise CommandError(
            f"{' '.join(argv[:3])} ended with status {process.returncode}: {_tail(out, err)}",
            argv=list(argv),
            status=process.returncode,
        )
    return subprocess.CompletedProcess(
        argv, process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    )


def _tail(out: bytes, err: bytes) -> str:
    text = (err.strip() or out.strip()).decode(errors="replace")
    return "\n".join(text.splitlines()[-LAST_LINES:])
