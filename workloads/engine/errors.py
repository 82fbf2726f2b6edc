"""Exit codes and errors shared by the training programs; the roles `workloads` and `verify` read the codes."""

from __future__ import annotations

import errno
import os
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Meaning of a training process's exit code."""

    TRAINED = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    BOUND_NOT_REACHED = 3
    DIVERGED = 4
    VOLUME = 5
    PREEMPTED = 42
    STALLED = 75


_PASSING = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH)
"""Errors of a disk or file server that may be transient."""


class InputError(ValueError):
    """A user setting that cannot work; a restart does not help.

    :param message: one sentence naming the input and its value.
    :param remedy: one sentence in the imperative, naming a valid setting.
    """

    code = ExitCode.BAD_INPUT

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


class VolumeError(InputError):
    """A volume is full, not accessible, or contains damaged files.

    The flags are correct, but an operator must repair the volume first. Earlier checkpoints stay unchanged.
    """

    code = ExitCode.VOLUME


class StalledError(RuntimeError):
    """The cluster does not answer; the same run may succeed after a restart."""


def unwritable(folder: Path, error: OSError) -> VolumeError | StalledError:
    """Return the error for a folder that cannot be written, with a remedy."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room on its volume." if full else f"Make it writable for user {os.getuid()}."
    return _fault(f"The folder {folder} cannot be written ({error.strerror or error}).", remedy, error)


def unreadable(file: Path, error: OSError) -> VolumeError | StalledError:
    """Return the error for an existing file that cannot be read, with a remedy."""
    remedy = f"Make it readable for user {os.getuid()}."
    return _fault(f"{file} cannot be read ({error.strerror or error}).", remedy, error)


def _fault(message: str, remedy: str, error: OSError) -> VolumeError | StalledError:
    return StalledError(message) if error.errno in _PASSING else VolumeError(message, remedy)


class DivergedError(ArithmeticError):
    """The loss or a parameter is not a finite number. The last checkpoint is older, and more training does not help.

    :param message: one sentence naming the step.
    """

    remedy = "Lower learning_rate. The last checkpoint, from before the divergence, is kept."
