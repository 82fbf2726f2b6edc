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

from lib.errors import InputError
from lib.lease import Lease

AUTO, FRESH = "auto", "fresh"

_CHECKPOINT = re.compile(r"ckpt-(\d+)\.index")


class RunFolder:
    """A run's folder, held by one chief.

    :param path: the folder; made if it is absent.
    :param attempt: name of this submission; a restart of the same one has the same name.
    :param lost: called in a thread, with the reason, when another chief has taken over.
    """

    def __init__(self, path: Path, attempt: str, lost: Callable[[str], None]) -> None:
        self._path = path
        self._attempt = attempt
        self._lease = Lease(path / "lease", lost)
        self._lease.acquire()
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
        :raises InputError: the checkpoints are of another kind.
        """
        file = self._path / "run.json"
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self._since = int(known.get("since", 1))
        if known.get("attempt") != self._attempt:
            newest = max((_newest(folder) for folder in self._with_checkpoints()), default=0)
            if resume == FRESH or (target and newest >= target):
                self._since = self._lease.epoch
        found = self._with_checkpoints()
        if found:
            self._compare(known.get("kind", {}), kind)
        text = json.dumps({"attempt": self._attempt, "since": self._since, "kind": dict(kind)}, indent=1)
        beside = file.with_suffix(".part")
        beside.write_text(text + "\n", encoding="utf-8")
        os.replace(beside, file)
        return found

    def may_write(self) -> bool:
        """Whether this chief still holds the folder; asked before a checkpoint counts as the run's newest."""
        return self._lease.held()

    def prune(self) -> None:
        """Remove what newer checkpoints have made superfluous; the newest of a chief before stays as a fallback."""
        others = [folder for folder in self._all() if folder != self.save_to]
        for folder in others[1:]:
            shutil.rmtree(folder, ignore_errors=True)

    def release(self) -> None:
        """Let the next chief in at once."""
        self._lease.release()

    def _compare(self, known: Mapping[str, object], kind: Mapping[str, object]) -> None:
        wanted = json.loads(json.dumps(dict(kind)))
        for name in sorted({*known, *wanted}):
            if known.get(name) != wanted.get(name):
                raise InputError(
                    f"This run has checkpoints with {name} {known.get(name)}, and {wanted.get(name)} is asked for.",
                    "Give the run another name, set it back, or start over with resume=fresh.",
                )

    def _checkpoints(self, epoch: int) -> Path:
        return self._path / "checkpoints" / f"{epoch:06d}"

    def _all(self) -> list[Path]:
        folder = self._path / "checkpoints"
        return sorted(folder.iterdir(), reverse=True) if folder.exists() else []

    def _with_checkpoints(self) -> list[Path]:
        return [folder for folder in self._all() if int(folder.name) >= self._since and _newest(folder) >= 0]


def _newest(folder: Path) -> int:
    """The highest step of which the folder has a whole checkpoint; -1 for none. The index is written last."""
    found = [_CHECKPOINT.fullmatch(path.name) for path in folder.iterdir()]
    return max((int(each[1]) for each in found if each), default=-1)
