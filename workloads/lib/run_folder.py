"""The folder of a run, which outlives its pods, its attempts and the cluster.

RUN/run.json              what its checkpoints are of, and since which epoch they count
RUN/lease/EPOCH           which chief may write, RUN/evaluator/EPOCH which evaluator (lib.lease)
RUN/checkpoints/EPOCH/    checkpoints of one chief's life
RUN/attempts/ATTEMPT/     events of one submission, and the marks of `Attempt`
RUN/evaluations.json      what has been judged, RUN/best the best of it (lib.evaluations)
RUN/export/               the model that a successful run ends with, as a SavedModel
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lib import whole_file
from lib.errors import InputError, StalledError, VolumeError, unreadable, unwritable
from lib.evaluations import Evaluations
from lib.lease import Lease

AUTO, FRESH = "auto", "fresh"

_CHECKPOINT = re.compile(r"ckpt-(\d+)\.index")


class Attempt:
    """The part of a run's folder that belongs to one submission, and what chief and evaluator tell each other by it.

    :param run: the run's folder.
    :param name: of the attempt.
    """

    def __init__(self, run: Path, name: str) -> None:
        self.name = name
        self.folder = run / "attempts" / name
        self._evaluator, self._ended = self.folder / "evaluator", self.folder / "ended"

    @property
    def has_evaluator(self) -> bool:
        return self._evaluator.exists()

    @property
    def ended(self) -> bool:
        """Whether the chief has given its verdict; there will be no more checkpoints."""
        return self._ended.exists()

    def begin(self) -> None:
        """The chief is there; what it finds of a verdict is of a life before."""
        self._ended.unlink(missing_ok=True)

    def finish(self) -> None:
        """The verdict is given, and stands whether or not this can be written: an evaluator that does not read it ends
        with the run's other pods."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._ended.touch()

    def announce_evaluator(self) -> None:
        """From now on the chief leaves the evaluations to the evaluator.

        :raises VolumeError: the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._evaluator.touch()
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def withdraw_evaluator(self) -> None:
        """The evaluator cannot judge: the chief does."""
        with suppress(OSError):
            self._evaluator.unlink(missing_ok=True)


class RunFolder:
    """A run's folder, held by one chief.

    :param path: the folder; made if it is absent.
    :param attempt: name of this submission; a restart of the same one has the same name.
    :param lost: called in a thread, with the reason, when another chief has taken over.
    :raises VolumeError: the folder cannot be written.
    :raises StalledError: its volume does not answer.
    """

    def __init__(self, path: Path, attempt: str, lost: Callable[[str], None]) -> None:
        self._path = path
        self.attempt = Attempt(path, attempt)
        self._lease = Lease(path / "lease", lost)
        try:
            self._lease.acquire()
            self.attempt.begin()
        except OSError as error:
            raise unwritable(path, error) from error
        self._since = self._lease.epoch

    @property
    def save_to(self) -> Path:
        """Where this chief writes checkpoints; nobody else does."""
        return self._path / "checkpoints" / f"{self._lease.epoch:06d}"

    def open(self, kind: Mapping[str, object], target: int, resume: str) -> list[Path]:
        """Decide from what the run goes on.

        :param kind: what a checkpoint is of: it fits no run that differs in what was noted of it.
        :param target: step that the run is to reach, 0 for none. An attempt that finds it reached by one before, with a
            verdict, starts over: what is on record there was trained then.
        :param resume: `auto` goes on from the newest checkpoint, `fresh` starts over; within an attempt both go on.
        :returns: folders with checkpoints, the newest first; empty to start at step 0.
        :raises InputError: the checkpoints are of another kind.
        :raises VolumeError: `run.json` is damaged, or cannot be read or written.
        :raises StalledError: another chief has taken over, or the volume does not answer.
        """
        known = self._known(resume)
        self._since = known.get("since", 1)
        if known.get("attempt") != self.attempt.name:
            newest = max((_newest_step(folder) for folder in self._with_checkpoints()), default=0)
            before = Attempt(self._path, known.get("attempt", ""))
            if resume == FRESH or (target and newest >= target and before.ended):
                self._since = self._lease.epoch
        found = self._with_checkpoints()
        if found and "kind" in known:
            self._compare(known["kind"], kind)
        self.require_held()
        self._write({"attempt": self.attempt.name, "since": self._since, "kind": dict(kind)})
        return found

    @property
    def evaluations(self) -> Evaluations:
        """What was judged of the checkpoints that count."""
        return Evaluations(self._path, self._since)

    @property
    def export(self) -> Path:
        """Where the model of a successful run goes."""
        return self._path / "export"

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
            raise VolumeError(
                f"{self._file} is damaged ({type(error).__name__}: {error}).",
                "Remove it to go on from the newest checkpoint, or start over with workloads_state=restarted.",
            ) from error
        except OSError as error:
            raise unreadable(self._file, error) from error

    def _write(self, known: Mapping[str, object]) -> None:
        try:
            whole_file.write(self._file, json.dumps(known, indent=1) + "\n")
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _compare(self, known: Mapping[str, object], kind: Mapping[str, object]) -> None:
        wanted = json.loads(json.dumps(dict(kind)))
        # What an older program did not note is not compared; from now on it is noted.
        for name in sorted(known):
            if known.get(name) != wanted.get(name):
                raise InputError(
                    f"This run has checkpoints with {name} {known.get(name)}, and {wanted.get(name)} is asked for.",
                    "Give the run another name, set it back, or start over with workloads_state=restarted.",
                )

    def _all(self) -> list[Path]:
        """Every chief's folder, the newest first."""
        return sorted((each for each in (self._path / "checkpoints").glob("*") if each.name.isdecimal()), reverse=True)

    def _with_checkpoints(self) -> list[Path]:
        return [folder for folder in self._all() if int(folder.name) >= self._since and steps(folder)]


class Checkpoints:
    """The checkpoints of a run for one that only reads them, while the chief writes and removes them.

    :param run: the run's folder.
    :param attempt: whose checkpoints are meant.
    """

    def __init__(self, run: Path, attempt: Attempt) -> None:
        self._run, self._attempt = run, attempt

    def since(self) -> int | None:
        """Epoch since which the run's checkpoints count; None until the attempt's chief has said so."""
        try:
            known = json.loads((self._run / "run.json").read_text(encoding="utf-8"))
            return int(known["since"]) if known["attempt"] == self._attempt.name else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # Not there yet; that it is damaged the chief says.

    def newest(self) -> tuple[int, Path] | None:
        """Step and path of the newest whole checkpoint that counts, None where there is none."""
        since = self.since()
        folders = [each for each in (self._run / "checkpoints").glob("*") if each.name.isdecimal()]
        for folder in sorted(folders, reverse=True):
            if since is not None and int(folder.name) >= since and (found := steps(folder)):
                return found[0], folder / f"ckpt-{found[0]}"
        return None


def steps(folder: Path) -> list[int]:
    """The steps of which the folder has a whole checkpoint, the newest first.

    The index of a checkpoint is written last. TensorFlow's own list beside them, the file `checkpoint`, is not needed.
    """
    found = [_CHECKPOINT.fullmatch(path.name) for path in folder.glob("*.index")]
    return sorted((int(each[1]) for each in found if each), reverse=True)


def _newest_step(folder: Path) -> int:
    return steps(folder)[0]
