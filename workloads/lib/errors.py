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
    VOLUME = 5
    PREEMPTED = 42
    STALLED = 75


_PASSING = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH)
"""Of a disk or a server of files that does not answer now, and may to the next attempt."""


class InputError(ValueError):
    """Something that the user set cannot work; a restart does not help.

    :param message: one sentence naming the input and its value.
    :param remedy: one sentence saying what to set instead.
    """

    code = ExitCode.BAD_INPUT

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


class VolumeError(InputError):
    """A volume is full, forbidden, or holds what is damaged. The flags are right, but nothing works until somebody has
    seen to it; what was saved before stays as it is."""

    code = ExitCode.VOLUME


class StalledError(RuntimeError):
    """The cluster does not answer; the same run may succeed when it is started again."""


def unwritable(folder: Path, error: OSError) -> VolumeError | StalledError:
    """The error for a folder that cannot be written, with what to do about it."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room on its volume." if full else f"Make it writable for user {os.getuid()}."
    return _fault(f"The folder {folder} cannot be written ({error.strerror or error}).", remedy, error)


def unreadable(file: Path, error: OSError) -> VolumeError | StalledError:
    """The error for a file that is there and cannot be read, with what to do about it."""
    remedy = f"Make it readable for user {os.getuid()}."
    return _fault(f"{file} cannot be read ({error.strerror or error}).", remedy, error)


def _fault(message: str, remedy: str, error: OSError) -> VolumeError | StalledError:
    return StalledError(message) if error.errno in _PASSING else VolumeError(message, remedy)


class DivergedError(ArithmeticError):
    """The loss or a parameter is not a finite number; the last checkpoint was saved before that, and more training does
    not help.

    :param message: one sentence naming the step.
    """

    remedy = "Lower learning_rate; the last checkpoint is from before, and is kept."
