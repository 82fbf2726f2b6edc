"""The folder of a run, which outlives its pods, its attempts and the cluster.

RUN/run.json              what its checkpoints are of, and since which epoch they count
RUN/lease/EPOCH           who may write (lib.lease)
RUN/checkpoints/EPOCH/    checkpoints of one chief's life
RUN/attempts/ATTEMPT/     events of one submission
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lib.errors import InputError, StalledError, unwritable
from lib.lease import Lease

AUTO, FRESH = "auto", "fresh"

_CHECKPOINT = re.compile(r"ckpt-(\d+)\.index")


class RunFolder:
    """A run's folder, held by one chief.

    :param path: the folder; made if it is absent.
    :param attempt: name of this submission; a restart of the same one has the same name.
    :param lost: called in a thread, with the reason, when another chief has taken over.
    :raises InputError: the folder cannot be written.
    """

    def __init__(self, path: Path, attempt: str, lost: Callable[[str], None]) -> None:
        self._path = path
        self._attempt = attempt
        self._lease = Lease(path / "lease", lost)
        try:
            self._lease.acquire()
        except OSError as error:
            raise unwritable(path, error) from error
        self._since = self._lease.epoch

    @property
    def events(self) -> Path:
        """Where the metrics of this attempt go."""
        return self._path / "attempts" / self._attempt

    @property
    def save_to(self) -> Path:
        """Where this chief writes checkpoints; nobody else does."""
        return self._checkpoints(self._lease.epoch)

    def open(self, kind: Mapping[str, object], target: int, resume: str) -> list[Path]:
        """Decide from what the run goes on.

        :param kind: what a checkpoint is of: it fits no run that differs in one of these.
        :param target: step that the run is to reach, 0 for none. An attempt that finds it reached by one before starts
            over: what is on record there was trained then.
        :param resume: `auto` goes on from the newest checkpoint, `fresh` starts over; within an attempt both go on.
        :returns: folders with checkpoints, the newest first; empty to start at step 0.
        :raises InputError: the checkpoints are of another kind, or `run.json` is damaged or cannot be written.
        :raises StalledError: another chief has taken over.
        """
        known = self._known(resume)
        self._since = known.get("since", 1)
        if known.get("attempt") != self._attempt:
            newest = max((_newest_step(folder) for folder in self._with_checkpoints()), default=0)
            if resume == FRESH or (target and newest >= target):
                self._since = self._lease.epoch
        found = self._with_checkpoints()
        if found and "kind" in known:
            self._compare(known["kind"], kind)
        self.require_held()
        self._write({"attempt": self._attempt, "since": self._since, "kind": dict(kind)})
        return found

    def require_held(self) -> None:
        """Asked before `run.json` is written, and before a checkpoint counts as the run's newest.

        :raises StalledError: this chief does not hold the folder any more.
        """
        if not self._lease.held():
            raise StalledError("Another chief has taken over this run; this one was taken for lost.")

    def prune(self) -> None:
        """Remove what newer checkpoints have made superfluous: what is older than the fallback, which is the newest
        folder of a chief before that has a whole checkpoint."""
        before = [folder for folder in self._all() if int(folder.name) < self._lease.epoch]
        whole = [folder for folder in before if steps(folder)]
        for folder in before:
            if whole and folder < whole[0]:
                shutil.rmtree(folder, ignore_errors=True)

    def release(self) -> None:
        """Let the next chief in at once."""
        self._lease.release()

    @property
    def _file(self) -> Path:
        return self._path / "run.json"

    def _known(self, resume: str) -> dict[str, Any]:
        """What `run.json` says; nothing where it is absent, and nothing matters to one that starts over.

        A damaged one is not guessed: it says which checkpoints belong to a run that was given up, and a guess would
        either go on from those or start over silently. It is written so that a power cut does not damage it.
        """
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
            return {"attempt": str(known["attempt"]), "since": int(known["since"]), "kind": dict(known["kind"])}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError) as error:
            if resume == FRESH:
                return {}
            raise InputError(
                f"{self._file} is damaged ({type(error).__name__}: {error}).",
                "Remove it to go on from the newest checkpoint, or start over with workloads_state=restarted.",
            ) from error

    def _write(self, known: Mapping[str, object]) -> None:
        """Replace `run.json`; after a power cut it is either the old or the new one."""
        beside = self._file.with_suffix(".part")
        try:
            with beside.open("w", encoding="utf-8") as stream:
                stream.write(json.dumps(known, indent=1) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, self._file)
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _compare(self, known: Mapping[str, object], kind: Mapping[str, object]) -> None:
        wanted = json.loads(json.dumps(dict(kind)))
        for name in sorted({*known, *wanted}):
            if known.get(name) != wanted.get(name):
                raise InputError(
                    f"This run has checkpoints with {name} {known.get(name)}, and {wanted.get(name)} is asked for.",
                    "Give the run another name, set it back, or start over with workloads_state=restarted.",
                )

    def _checkpoints(self, epoch: int) -> Path:
        return self._path / "checkpoints" / f"{epoch:06d}"

    def _all(self) -> list[Path]:
        """Every chief's folder, the newest first."""
        return sorted((each for each in (self._path / "checkpoints").glob("*") if each.name.isdecimal()), reverse=True)

    def _with_checkpoints(self) -> list[Path]:
        return [folder for folder in self._all() if int(folder.name) >= self._since and steps(folder)]


def steps(folder: Path) -> list[int]:
    """The steps of which the folder has a whole checkpoint, the newest first.

    The index of a checkpoint is written last. TensorFlow's own list beside them, the file `checkpoint`, is not needed.
    """
    found = [_CHECKPOINT.fullmatch(path.name) for path in folder.glob("*.index")]
    return sorted((int(each[1]) for each in found if each), reverse=True)


def _newest_step(folder: Path) -> int:
    return steps(folder)[0]
