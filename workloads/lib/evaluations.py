"""The record of a run's evaluations, in its folder: the best checkpoint, and how long it has been the best.

The evaluator writes it, or the chief if there is no evaluator; the other one only reads it.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lib import whole_file
from lib.errors import VolumeError, unreadable, unwritable


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
