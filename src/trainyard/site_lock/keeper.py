"""The process that holds the locks of a run during its lifetime, and renews its lease.

ansible-playbook runs each task in a child process, and a lock would end with it. Its callbacks get no call while a task
runs for an hour. So the task `run_lock` starts this program, which takes the locks, reports the result, and watches the
run's process. When that process ends, also by a kill, the program releases the locks.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from ..core.errors import TrainyardError
from ..core.untrusted import line, text
from ..core.waiter import CLOCK, Clock
from ..kube.api import Api, KubeError
from ..kube.connection import connect
from ..project import python_environment
from . import lease, machine_lock
from .holder import Busy, Holder, of

PROGRAM = ("-s", "-P", "-m", "trainyard.site_lock.keeper")
"""Arguments for Python: this file of the same checkout, without the user's own packages."""

ERROR_BYTES = 4096
"""Bytes that are read from the end of a keeper's standard error; an error quotes the last line."""

START_SECONDS = 150.0
"""Limit for the answer of a keeper, which watches a lease that looks expired for a minute."""


@dataclass(frozen=True)
class Wanted:
    """The locks that a run requests.

    :param site: as for `machine.path_of`.
    :param pid: the process of the run.
    :param kubeconfig: credentials of the cluster; empty for no lease, as in check mode.
    :param held: holder of the machine's lock if the run has it already; None if the keeper has to take it, too.
    """

    site: str
    verb: str
    run_id: str
    pid: int
    kubeconfig: str = ""
    revision: str = ""
    held: Holder | None = None


class Keeper:
    """The locks of one run.

    :param connected: connects to the cluster.
    """

    def __init__(
        self,
        wanted: Wanted,
        *,
        connected: Callable[[str], Api] = connect,
        clock: Clock = CLOCK,
        where: Path | None = None,
    ) -> None:
        self._wanted, self._connected, self._clock, self._where = wanted, connected, clock, where
        self._machine: machine_lock.Held | None = None
        self._lease: lease.Lease | None = None
        self._renewed = 0.0
        self.holder: Holder | None = None

    def take(self) -> Holder:
        """Take both locks, and return the run with notes about them.

        :raises Busy: a running run has one of them; then none is held.
        """
        it = self._wanted
        if it.held is None:
            self._machine = machine_lock.acquire(
                it.site, it.verb, it.run_id, revision=it.revision, pid=it.pid, where=self._where, clock=self._clock
            )
            self._machine.note(keeper=os.getpid())
        self.holder = self._machine.holder if self._machine else it.held
        assert self.holder is not None
        if not it.kubeconfig:
            return self.holder
        try:
            self._lease = lease.Lease(self._connected(it.kubeconfig), self.holder, self._clock)
            former = self._lease.take()
            self._renewed = self._clock.monotonic()
            said = (f"The lease of an ended run, which had not released it, was taken over: {former}.",)
            self._note(leased=True, notes=said if former else ())
        except KubeError as error:
            # The run may create or repair the cluster, so it must start without a lease.
            self._lease = None
            self._note(notes=(f"Only the lock of this machine counts, because there is no lease: {error.message}",))
        except BaseException:
            self.give_back()
            raise
        return self.holder

    def renew(self) -> None:
        """Renew the lease, and record the result in the machine's lock."""
        if self._lease is None or self.holder is None:
            return
        try:
            self._lease.renew()
        except lease.Lost as error:
            self._lease = None
            self._note(leased=False, lost=error.message)
        except KubeError as error:
            if self._clock.monotonic() - self._renewed >= lease.LEASE_SECONDS:
                self._note(lost=f"The lease could not be renewed for {lease.LEASE_SECONDS} s: {error.message}")
        else:
            self._renewed = self._clock.monotonic()
            if self.holder.lost:
                self._note(lost="")

    def give_back(self) -> None:
        """Release the locks, the machine's lock last, so that its next holder finds no lease of this run."""
        try:
            if self._lease:
                self._lease.release()
        except TrainyardError:
            # The lease expires, and the next holder of this machine's lock takes it over at once.
            pass
        finally:
            if self._machine:
                self._machine.release()

    def _note(self, **changes: object) -> None:
        assert self.holder is not None
        self.holder = replace(self.holder, **changes)  # type: ignore[arg-type]
        if self._machine:
            self._machine.note(**changes)


def start(wanted: Wanted, seconds: float = START_SECONDS) -> tuple[Holder, int]:
    """Start a keeper for a run, wait for its answer, and return the holder and the keeper's process id.

    :param seconds: limit for its answer.
    :raises Busy: a running run has one of the locks.
    :raises TrainyardError: the locks are unavailable for another reason.
    """
    # A file instead of a pipe, because the keeper outlives this process and may still write to it.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, *PROGRAM],
            env=python_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C must reach only the run. Its end also ends the keeper.
            start_new_session=True,
            cwd="/",
            text=True,
        )
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(json.dumps(asdict(wanted)))
        with process.stdout as stdout:
            ready, _, _ = select.select([stdout], [], [], seconds)
            answer = stdout.readline() if ready else ""
        try:
            said = json.loads(answer)
        except ValueError:
            process.kill()
            process.wait()
            raise TrainyardError(_not_started(errors, bool(ready), seconds)) from None
    if "holder" in said:
        found = of(said["holder"])
        assert found is not None
        # Do not wait for the keeper, because it lives as long as the run.
        process.returncode = 0
        return found, process.pid
    process.wait()
    if said["busy"]:
        raise Busy(said["message"], of(said["by"] or {}), remedy=said["remedy"])
    raise TrainyardError(said["message"], remedy=said["remedy"])


def _not_started(errors: IO[bytes], answered: bool, seconds: float) -> str:
    """Return why there is no keeper, with the last line of its standard error."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(size - ERROR_BYTES, 0))
    lines = [line(each) for each in text(errors.read(), ERROR_BYTES).splitlines()]
    last = next((each for each in reversed(lines) if each), "")
    why = last or ("it ended without an answer" if answered else f"no answer within {seconds:.0f} s")
    return f"The process that keeps the locks did not start: {why}."


def stop(pid: int, seconds: float = 15.0) -> bool:
    """Make a keeper release its locks, wait for its end, and return whether it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        return bool(select.select([descriptor], [], [], seconds)[0])
    except OSError:
        return True
    finally:
        os.close(descriptor)


def serve(stdin: IO[str], stdout: IO[str]) -> None:
    """Take the locks, answer with one line of JSON, and hold them until the run has ended."""
    read = json.load(stdin)
    wanted = Wanted(**{**read, "held": of(read["held"] or {})})
    run = os.pidfd_open(wanted.pid)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keeper = Keeper(wanted)
    try:
        answer: dict[str, object] = {"holder": asdict(keeper.take())}
    except TrainyardError as error:
        by = asdict(error.holder) if isinstance(error, Busy) and error.holder else None
        answer = {"message": error.message, "remedy": error.remedy, "busy": isinstance(error, Busy), "by": by}
        print(json.dumps(answer), file=stdout)
        return
    try:
        print(json.dumps(answer), file=stdout, flush=True)
        stdout.close()
        while not select.select([run], [], [], lease.RENEW_SECONDS)[0]:
            keeper.renew()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        keeper.give_back()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
