"""Exit codes and errors that the training programs share; the roles `workloads` and `verify` read the codes."""

from __future__ import annotations

import errno
import os
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What the end of a training process means."""

    TRAINED = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    BOUND_NOT_REACHED = 3
    DIVERGED = 4
    PREEMPTED = 42
    STALLED = 75


class InputError(ValueError):
    """Something that the user set cannot work; a restart does not help.

    :param message: one sentence naming the input and its value.
    :param remedy: one sentence saying what to set instead.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


def unwritable(folder: Path, error: OSError) -> InputError:
    """The error for a folder that cannot be written, with what to do about it."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return InputError(
        f"The folder {folder} cannot be written ({error.strerror or error}).",
        "Make room on its volume." if full else f"Make it writable for user {os.getuid()}.",
    )


class StalledError(RuntimeError):
    """The cluster does not answer; the same run may succeed when it is started again."""


class DivergedError(ArithmeticError):
    """The loss or a parameter is not a finite number; the last checkpoint was saved before that, and more training does
    not help.

    :param message: one sentence naming the step.
    """

    remedy = "Lower learning_rate; the last checkpoint is from before, and is kept."
