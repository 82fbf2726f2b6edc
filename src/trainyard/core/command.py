"""Running programs: always bounded in time, never through a shell, failures as `CommandError`."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .errors import CommandError

FIRST_LINES = 5
"""How many lines of a failed program's output an error quotes from its beginning, where apt says what is wrong."""

LAST_LINES = 15
"""How many lines it quotes from the end: enough for a Go or pip error with its context."""

KILL_TIMEOUT = 10.0
"""Seconds that a killed program has to go; one that waits for a dead disk or mount does not go at all."""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    ok: Sequence[int] = (0,),
    outlives: bool = True,
    inherit: bool = True,
    largest: int = 0,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its result with text output.

    The program's own end counts, not that of its output: a daemon that it leaves behind, or a child that has left its
    session, may hold the output open for ever.

    :param timeout: seconds after which the program and the children in its session are killed.
    :param env: variables added to this process's environment.
    :param inherit: whether this process's environment is handed on; otherwise `env` is all of it.
    :param ok: exit statuses that are not an error.
    :param largest: bytes beyond which the kernel ends the program that writes a file (SIGXFSZ); 0 for no limit.
    :param outlives: the program goes on to its end when this process is killed, as one that changes a host should;
        otherwise the kernel ends it then (SIGTERM).
    :raises CommandError: the program is missing, ended with another status, or ran out of time.
    """
    with _memory("stdin", stdin or b"") as given, _memory("stdout") as out, _memory("stderr") as err:
        try:
            process = subprocess.Popen(
                [*_bounds(outlives, largest), *argv],
                cwd=cwd,
                env={**(os.environ if inherit else {}), **(env or {})},
                stdin=given if stdin is not None else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(f"{argv[0]} cannot be started: {error.strerror}.") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise CommandError(
                f"{' '.join(argv[:3])} did not end within {timeout:.0f} s: {_tail(_text(out), _text(err))}",
                argv=list(argv),
            ) from None
        stdout, stderr = _text(out), _text(err)
    if status not in ok:
        raise CommandError(
            f"{' '.join(argv[:3])} ended with status {status}: {_tail(stdout, stderr)}", argv=list(argv), status=status
        )
    return subprocess.CompletedProcess(argv, status, stdout, stderr)


def _bounds(outlives: bool, largest: int) -> list[str]:
    """Programs of util-linux that set a limit, and become what follows them."""
    tied = [] if outlives else ["setpriv", "--pdeathsig=TERM", "--"]
    return [*tied, *(["prlimit", f"--fsize={largest}", "--"] if largest else [])]


@contextmanager
def _memory(name: str, content: bytes = b"") -> Iterator[int]:
    """An unnamed file in memory: no pipe that breaks when this process is killed, no secret on a disk."""
    descriptor = os.memfd_create(name)
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        # Children that open the file anew (`> /dev/stderr`) must not overwrite each other's lines.
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
        yield descriptor
    finally:
        os.close(descriptor)


def _text(descriptor: int) -> str:
    # `pread` leaves the position alone, which is that of whoever still writes.
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, 9)
    try:
        process.wait(KILL_TIMEOUT)
    except subprocess.TimeoutExpired:
        # Nothing more can be done; its parent may go on and report it.
        process.returncode = -9


def _tail(out: str, err: str) -> str:
    lines = (err.strip() or out.strip()).splitlines()
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out > 1:
        lines[FIRST_LINES:-LAST_LINES] = [f"... {left_out} lines left out ..."]
    return "\n".join(lines)
