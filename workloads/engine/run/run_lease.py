"""The right to write into a run's folder: one chief at a time, even if two consider themselves the only one.

If a node is cut off from the cluster, its chief is started elsewhere, while the old one may still run and reach the
same files. A chief therefore takes the folder under a number, the *epoch*: one above the highest existing one. It
creates a file of that name, which only one process can do. The holder touches its file periodically. A newcomer takes
the next epoch when the file was released or has not been touched for a while.

A live holder gets time to save and leave, and is then overtaken: the cluster started the newcomer because it considers
the holder lost, and only the newcomer can reach the run's other pods. The holder notices within a second and ends.
Written files carry the epoch in their path (`run_folder`), so a holder that is overtaken during a write does no harm.
Two chiefs cannot overtake each other repeatedly: an attempt of the JobSet has one chief pod, whose container is never
restarted, and each process takes the folder once.

Evaluators hold their own folder in the same way: all attempts at the run share their files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.cluster.preemption import GRACE_SECONDS

RENEW_SECONDS = 1.0
EXPIRE_SECONDS = 6.0
"""A holder that has not touched its file for this long is dead, or will find itself overtaken. Clocks are not compared:
a waiting process measures with its own clock how long nothing has changed."""
PATIENCE_SECONDS = GRACE_SECONDS + 5.0
"""Time for a live holder: one that received SIGTERM has saved and left by then."""
LOOK_SECONDS = 0.25
KEPT = 3
"""Files of earlier epochs that are kept for later inspection."""

_RELEASED = b"released\n"


class Lease:
    """The right to write into one folder, until it is released, lost, or the process ends.

    :param folder: folder on a volume shared by all chiefs of the run; created if it is missing.
    :param lost: called once, in a thread, with the reason when the lease is lost.
    """

    def __init__(self, folder: Path, lost: Callable[[str], None]) -> None:
        self._folder = folder
        self._lost = lost
        self._stopped = threading.Event()
        self.epoch = 0

    def acquire(self) -> int:
        """Wait until the previous holder releases, expires, or exhausts the patience; then take the next epoch.

        :returns: the epoch, from 1.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        epoch, sign = -1, (-1, 0)
        met = heard = time.monotonic()
        while True:
            newest = self._newest_epoch()
            touched = self._touched(newest)
            now = time.monotonic()
            if newest != epoch:
                epoch, met = newest, now
            if (epoch, touched) != sign:
                sign, heard = (epoch, touched), now
            waited = now - heard >= EXPIRE_SECONDS or now - met >= PATIENCE_SECONDS
            if (waited or not touched) and self._take(epoch + 1):
                return self.epoch
            time.sleep(LOOK_SECONDS)

    def held(self) -> bool:
        """Return whether this holder has not been overtaken."""
        return self._newest_epoch() == self.epoch

    def release(self) -> None:
        """Release the folder, so that the next chief need not wait."""
        self._stopped.set()
        try:
            self._file(self.epoch).write_bytes(_RELEASED)
        except OSError:
            # The volume is probably full. The next chief waits for the expiry.
            return

    def _take(self, epoch: int) -> bool:
        try:
            os.close(os.open(self._file(epoch), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
        except FileExistsError:
            return False
        if self._newest_epoch() != epoch:
            # Other chiefs came and went in the meantime, and removed the file of this epoch.
            self._file(epoch).unlink(missing_ok=True)
            return False
        self.epoch = epoch
        for old in self._epochs()[: -KEPT - 1]:
            self._file(old).unlink(missing_ok=True)
        threading.Thread(target=self._renew, name="lease", daemon=True).start()
        return True

    def _renew(self) -> None:
        """Touch the file periodically. This needs no space, so a full volume alone does not end the lease."""
        renewed = time.monotonic()
        while not self._stopped.wait(RENEW_SECONDS):
            try:
                if not self.held():
                    self._end(f"another chief has taken {self._folder} (epoch {self._newest_epoch()})")
                    return
                os.utime(self._file(self.epoch))
                renewed = time.monotonic()
            except OSError as error:
                if time.monotonic() - renewed > EXPIRE_SECONDS:
                    self._end(f"{self._folder} could not be written for {EXPIRE_SECONDS:.0f} s: {error}")
                    return

    def _end(self, reason: str) -> None:
        self._stopped.set()
        self._lost(reason)

    def _epochs(self) -> list[int]:
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdecimal())

    def _newest_epoch(self) -> int:
        return (self._epochs() or [0])[-1]

    def _file(self, epoch: int) -> Path:
        return self._folder / f"{epoch:06d}"

    def _touched(self, epoch: int) -> int:
        """Return when the file was last touched, in nanoseconds of its file system; 0 if there is no holder.

        The file is opened each time, because only then does a network file system ask the server.
        """
        try:
            with self._file(epoch).open("rb") as stream:
                return 0 if stream.read(len(_RELEASED)) == _RELEASED else os.fstat(stream.fileno()).st_mtime_ns
        except FileNotFoundError:
            return 0
