"""Run programs with a timeout and without a shell; failures raise `CommandError`."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .errors import CommandError
from .proxy import without

FIRST_LINES = 5
"""Lines that an error quotes from the start of a failed program's output, where apt reports the cause."""

LAST_LINES = 15
"""Lines that an error quotes from the end: enough for a Go or pip error with its context."""

KILL_TIMEOUT = 10.0
"""Seconds to wait for a killed program to exit. A program blocked on a dead disk or mount never exits."""


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

    The call returns when the program itself exits. It does not wait for the output to close, because a daemon or a
    child in another session may hold it open for ever.

    :param timeout: seconds after which the program and the children in its session are killed.
    :param env: variables added to this process's environment.
    :param inherit: whether the program inherits this process's environment; otherwise `env` is its whole environment.
        A program of `OF_THE_API` inherits no proxy.
    :param ok: exit statuses that are not an error.
    :param largest: largest file in bytes that the program may write (SIGXFSZ beyond it); 0 for no limit.
    :param outlives: the program keeps running if this process is killed, as is right for programs that change a host;
        otherwise the kernel terminates it (SIGTERM).
    :raises CommandError: the program is missing, exited with another status, or timed out.
    """
    with _memory("stdin", stdin or b"") as given, _memory("stdout") as out, _memory("stderr") as err:
        try:
            process = subprocess.Popen(
                [*_bounds(outlives, largest), *argv],
                cwd=cwd,
                env={**(_inherited(argv[0]) if inherit else {}), **(env or {})},
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


OF_THE_API = frozenset({"kubeadm", "kubectl"})
"""Programs that call the API server. kubeadm would also copy a proxy of its environment into static pods."""


def _inherited(program: str) -> Mapping[str, str]:
    return without(os.environ) if os.path.basename(program) in OF_THE_API else os.environ


STARTER = "TRAINYARD_STARTER"
"""Variable of an ansible-playbook with the process id of the program that started it and holds its locks."""


def end_with(parent: int) -> None:
    """Let the kernel send SIGTERM to this process when its parent ends, also if the parent is killed.

    :param parent: process id of the parent; if it has ended already, this process ends at once.
    """
    # PR_SET_PDEATHSIG: see prctl(2).
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _bounds(outlives: bool, largest: int) -> list[str]:
    """Return the util-linux wrappers that set the limits and then execute the program."""
    tied = [] if outlives else ["setpriv", "--pdeathsig=TERM", "--"]
    return [*tied, *(["prlimit", f"--fsize={largest}", "--"] if largest else [])]


@contextmanager
def _memory(name: str, content: bytes = b"") -> Iterator[int]:
    """Open an anonymous file in memory: unlike a pipe it survives this process, and no secret reaches a disk."""
    descriptor = os.memfd_create(name)
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        # Children that open the file again (`> /dev/stderr`) must not overwrite each other's lines.
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
        yield descriptor
    finally:
        os.close(descriptor)


def _text(descriptor: int) -> str:
    # `pread` does not move the file position, which processes that still write share.
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, 9)
    try:
        process.wait(KILL_TIMEOUT)
    except subprocess.TimeoutExpired:
        # The process cannot be reaped. The caller continues and reports the timeout.
        process.returncode = -9


def _tail(out: str, err: str) -> str:
    lines = (err.strip() or out.strip()).splitlines()
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out > 1:
        lines[FIRST_LINES:-LAST_LINES] = [f"... {left_out} lines left out ..."]
    return "\n".join(lines)
