"""The folder of a run, which outlives its pods, its attempts and the cluster.

RUN/run.json              kind of its checkpoints, and the epoch since which they count
RUN/lease/EPOCH           chief that may write, RUN/evaluator/EPOCH the evaluator (engine.run.run_lease)
RUN/checkpoints/EPOCH/    checkpoints of one chief's life
RUN/attempts/ATTEMPT/     events of one submission, and the marks of `Attempt`
RUN/evaluations.json      evaluations so far, RUN/best the best checkpoint (engine.run.run_folder)
RUN/export/               final model of a successful run, as a SavedModel

The record of a run's evaluations, in its folder: the best checkpoint, and how long it has been the best.

The evaluator writes it, or the chief if there is no evaluator; the other one only reads it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import InputError, StalledError, VolumeError, unreadable, unwritable
from engine.run import whole_file
from engine.run.run_lease import Lease


@dataclass(frozen=True)
class Account:
    """The state after an evaluation.

    :param since: epoch since which the run's checkpoints count.
    :param step: step of the last evaluated checkpoint; -1 if none was. The same holds for `best_step`.
    :param without_gain: evaluations since the best.
    """

    since: int
    step: int = -1
    best_step: int = -1
    best_accuracy: float = -1.0
    without_gain: int = 0


class Evaluations:
    """The record of one run.

    :param run: the run's folder.
    :param since: epoch since which the run's checkpoints count; evaluations of earlier ones are ignored.
    """

    def __init__(self, run: Path, since: int) -> None:
        self._file, self._best = run / "evaluations.json", run / "best"
        self._since = since

    def read(self) -> Account:
        """Return the current record.

        :raises VolumeError: the file is damaged, or cannot be read.
        """
        try:
            known = Account(**json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return Account(self._since)
        except (ValueError, TypeError) as error:
            raise VolumeError(f"{self._file} is damaged ({error}).", "Remove it.") from error
        except OSError as error:
            raise unreadable(self._file, error) from error
        return known if known.since == self._since else Account(self._since)

    def best(self, account: Account) -> Path:
        """Return the path of the copy of the best checkpoint, without file extensions."""
        return self._best / f"ckpt-{account.best_step}"

    def add(self, step: int, accuracy: float, checkpoint: Path) -> Account:
        """Record an evaluation, and copy the checkpoint if it is the best.

        The first of several equal ones is the best. A step that is not after the last one is not counted again.

        :param checkpoint: its path without file extensions.
        :raises FileNotFoundError: the chief has removed it in the meantime; nothing is recorded.
        :raises VolumeError: the run's folder cannot be written, or the file is damaged.
        """
        known = self.read()
        if step <= known.step:
            return known
        better = accuracy > known.best_accuracy
        try:
            if better:
                self._copy(checkpoint)
                known = Account(self._since, step, step, accuracy)
            else:
                known = replace(known, step=step, without_gain=known.without_gain + 1)
            whole_file.write(self._file, json.dumps(asdict(known), indent=1) + "\n")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise unwritable(self._file.parent, error) from error
        for old in self._best.glob("ckpt-*"):
            if old.stem != self.best(known).name:
                old.unlink(missing_ok=True)
        return known

    def _copy(self, checkpoint: Path) -> None:
        """Copy a checkpoint to the disk. The index comes last, because a checkpoint with an index counts as complete.

        All files are on the disk before the record names them.
        """
        whole_file.make_folder(self._best)
        for file in (*sorted(checkpoint.parent.glob(f"{checkpoint.name}.data-*")), checkpoint.with_suffix(".index")):
            part = self._best / "part"
            shutil.copyfile(file, part)
            whole_file.sync(part)
            os.replace(part, self._best / file.name)
        whole_file.sync(self._best)


AUTO, FRESH = "auto", "fresh"

_CHECKPOINT = re.compile(r"ckpt-(\d+)\.index")


class Attempt:
    """The part of a run's folder that belongs to one submission, and the marks that chief and evaluator exchange in it.

    :param run: the run's folder.
    :param name: name of the attempt.
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
        """Return whether the chief has given its verdict; there will be no more checkpoints."""
        return self._ended.exists()

    def begin(self) -> None:
        """Start a chief's life. An existing verdict belongs to an earlier life, and is removed."""
        self._ended.unlink(missing_ok=True)

    def finish(self) -> None:
        """Record that the verdict is given. The verdict is valid even if this write fails: an evaluator that does not
        read it ends with the run's other pods."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._ended.touch()

    def announce_evaluator(self) -> None:
        """Make the chief leave all further evaluations to the evaluator.

        :raises VolumeError: the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._evaluator.touch()
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def withdraw_evaluator(self) -> None:
        """Return the evaluations to the chief, because the evaluator cannot do them."""
        with suppress(OSError):
            self._evaluator.unlink(missing_ok=True)


class RunFolder:
    """A run's folder, held by one chief.

    :param path: the folder; created if it is missing.
    :param attempt: name of this submission; a restart of it has the same name.
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
        """Return the folder for this chief's checkpoints; no other process writes there."""
        return self._path / "checkpoints" / f"{self._lease.epoch:06d}"

    def open(self, kind: Mapping[str, object], target: int, resume: str) -> list[Path]:
        """Decide from which checkpoints the run continues.

        :param kind: properties of the checkpoints. A run only continues if all recorded properties are equal.
        :param target: step that the run is to reach, 0 for none. If an earlier attempt reached it, with a verdict, this
            attempt starts over: its result is already recorded.
        :param resume: `auto` continues from the newest checkpoint, `fresh` starts over; a restarted attempt always
            continues.
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
        """Return the evaluations of the checkpoints that count."""
        return Evaluations(self._path, self._since)

    @property
    def export(self) -> Path:
        """Return the folder for the model of a successful run."""
        return self._path / "export"

    def require_held(self) -> None:
        """Check the lease before `run.json` is written, and before a checkpoint counts as the run's newest.

        :raises StalledError: this chief no longer holds the folder.
        """
        if not self._lease.held():
            raise StalledError("Another chief has taken over this run, because this one was considered lost.")

    def prune(self) -> None:
        """Remove checkpoints older than the fallback, which is the newest earlier folder with a complete checkpoint."""
        before = [folder for folder in self._all() if int(folder.name) < self._lease.epoch]
        whole = [folder for folder in before if steps(folder)]
        for folder in before:
            if whole and folder < whole[0]:
                shutil.rmtree(folder, ignore_errors=True)

    def release(self) -> None:
        """Release the lease, so that the next chief need not wait."""
        self._lease.release()

    @property
    def _file(self) -> Path:
        return self._path / "run.json"

    def _known(self, resume: str) -> dict[str, Any]:
        """Return the content of `run.json`; empty if it is missing, or if a run that starts over finds it damaged.

        A damaged file is an error otherwise. It identifies the checkpoints of an abandoned run, and a guess would
        either continue from those or start over silently. A power cut does not damage it (`whole_file`).
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
                "Remove it to continue from the newest checkpoint, or start over with workloads_state=restarted.",
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
        # Properties that an older program did not record are not compared; from now on they are recorded.
        for name in sorted(known):
            if known.get(name) != wanted.get(name):
                raise InputError(
                    f"This run has checkpoints with {name} {known.get(name)}, and {wanted.get(name)} is requested.",
                    "Give the run another name, set it back, or start over with workloads_state=restarted.",
                )

    def _all(self) -> list[Path]:
        """Return every chief's folder, the newest first."""
        return sorted((each for each in (self._path / "checkpoints").glob("*") if each.name.isdecimal()), reverse=True)

    def _with_checkpoints(self) -> list[Path]:
        return [folder for folder in self._all() if int(folder.name) >= self._since and steps(folder)]


class Checkpoints:
    """The checkpoints of a run for a process that only reads them, while the chief writes and removes them.

    :param run: the run's folder.
    :param attempt: attempt whose checkpoints are wanted.
    """

    def __init__(self, run: Path, attempt: Attempt) -> None:
        self._run, self._attempt = run, attempt

    def since(self) -> int | None:
        """Return the epoch since which the run's checkpoints count; None until the attempt's chief has recorded it."""
        try:
            known = json.loads((self._run / "run.json").read_text(encoding="utf-8"))
            return int(known["since"]) if known["attempt"] == self._attempt.name else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # Not there yet; the chief reports a damaged file.

    def newest(self) -> tuple[int, Path] | None:
        """Return step and path of the newest complete checkpoint that counts, None if there is none."""
        since = self.since()
        folders = [each for each in (self._run / "checkpoints").glob("*") if each.name.isdecimal()]
        for folder in sorted(folders, reverse=True):
            if since is not None and int(folder.name) >= since and (found := steps(folder)):
                return found[0], folder / f"ckpt-{found[0]}"
        return None


def steps(folder: Path) -> list[int]:
    """Return the steps of the complete checkpoints in a folder, the newest first.

    The index of a checkpoint is written last. TensorFlow's own list beside them, the file `checkpoint`, is not needed.
    """
    found = [_CHECKPOINT.fullmatch(path.name) for path in folder.glob("*.index")]
    return sorted((int(each[1]) for each in found if each), reverse=True)


def _newest_step(folder: Path) -> int:
    return steps(folder)[0]
