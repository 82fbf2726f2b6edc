"""Tests of the meaning of a file error for a run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.errors import ExitCode, InputError, StalledError, VolumeError, unreadable, unwritable


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, VolumeError, r"/run cannot be written \(No space left on device\)\. Make room on its volume\."),
        (errno.EDQUOT, VolumeError, r"Make room on its volume"),
        (errno.EACCES, VolumeError, rf"Make it writable for user {os.getuid()}\."),
        (errno.EROFS, VolumeError, r"\(Read-only file system\)"),
        (errno.EIO, StalledError, r"/run cannot be written \(Input/output error\)\."),
        (errno.ESTALE, StalledError, r"\(Stale file handle\)"),
    ],
)
def test_a_full_or_forbidden_volume_is_none_that_does_not_answer(number, kind, words):
    with pytest.raises(kind, match=words):
        raise unwritable(Path("/run"), OSError(number, os.strerror(number)))


def test_what_cannot_be_read_is_named():
    with pytest.raises(VolumeError, match=rf"/run/x cannot be read \(.*\)\. Make it readable for user {os.getuid()}\."):
        raise unreadable(Path("/run/x"), PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def test_the_exit_code_tells_a_volume_from_an_input():
    assert (InputError("", "").code, VolumeError("", "").code) == (ExitCode.BAD_INPUT, ExitCode.VOLUME) == (2, 5)
