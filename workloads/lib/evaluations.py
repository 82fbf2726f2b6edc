"""What has been judged of a run, in its folder: the best checkpoint, and how long it has been the best.

Whoever evaluates keeps this account, the evaluator or else the chief; the other one only reads it.
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
    """What is known after an evaluation.

    :param since: epoch since which the run's checkpoints count.
    :param step: of the checkpoint that was judged last; -1 when none was, also of the best.
    :param without_gain: evaluations since the best.
    """

    since: int
    step: int = -1
    best_step: int = -1
    best_accuracy: float = -1.0
    without_gain: int = 0


class Evaluations:
    """The account of one run.

    :param run: the run's folder.
    :param since: epoch since which the run's checkpoints count; what was judged of those before is forgotten.
    """

    def __init__(self, run: Path, since: int) -> None:
        self._file, self._best = run / "evaluations.json", run / "best"
        self._since = since

    def read(self) -> Account:
        """The account as it is now.

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
        """Path of the copy of the best checkpoint, without the endings of its files."""
        return self._best / f"ckpt-{account.best_step}"

    def add(self, step: int, accuracy: float, checkpoint: Path) -> Account:
        """Count an evaluation, and keep a copy of the checkpoint if it is the best. Of equals the first is the best; a
        step that is not after the last one counts no more.

        :param checkpoint: its path without the endings of its files.
        :raises FileNotFoundError: the chief has removed it meanwhile; nothing is counted.
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
        """The index comes last, so that what has one is whole. All of it is on the disk before the account names it."""
        whole_file.make_folder(self._best)
        for file in (*sorted(checkpoint.parent.glob(f"{checkpoint.name}.data-*")), checkpoint.with_suffix(".index")):
            part = self._best / "part"
            shutil.copyfile(file, part)
            whole_file.sync(part)
            os.replace(part, self._best / file.name)
        whole_file.sync(self._best)
