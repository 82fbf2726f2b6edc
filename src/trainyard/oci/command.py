"""Check that the file that a command starts is in the code folder, so that a typo is found before a pod is created."""

from __future__ import annotations

import difflib
import os
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import TrainyardError
from .folder import Entry

MOUNT = "/opt/trainyard/code"
"""Path of the code folder in pods, which is their working directory."""


@dataclass(frozen=True)
class _Interpreter:
    """The command line syntax of a script interpreter.

    :param name: pattern of its file name.
    :param valued: options whose value is the next word.
    :param starts: options that start something other than a script. Groups: the option's letter, and the rest of the
        word.
    """

    name: re.Pattern[str]
    valued: re.Pattern[str]
    starts: re.Pattern[str]


_FLAGS = "[bBdEiIOPqsSuvx]*"
_INTERPRETERS = (
    _Interpreter(
        re.compile(r"(?:python|pypy)[0-9.]*"),
        re.compile(rf"-{_FLAGS}[WX]|--check-hash-based-pycs"),
        re.compile(rf"-{_FLAGS}([cm])(.*)"),
    ),
    _Interpreter(
        re.compile(r"(?:ba|da)?sh"),
        re.compile(r"[-+][a-zA-Z]*[oO]|--rcfile|--init-file"),
        re.compile(r"-[a-zA-Z]*(c)[a-zA-Z]*()"),
    ),
)


def check(command: Sequence[str], folder: Path, entries: Sequence[Entry]) -> None:
    """Refuse a command whose file is not among the entries.

    Checked are a program with a relative path (`./run.sh`), the script of an interpreter (`python worker.py`) and a
    module in the folder (`python -m mine.train`). All other programs are assumed to be in the image.

    :raises TrainyardError: the file does not exist, is excluded, or is not executable.
    """
    packed = {entry.name: entry for entry in entries if entry.is_file}
    shown = f"The command {shlex.join(command)}"
    program, words = (command[0], command[1:]) if command else ("", ())
    if _inside(program):
        entry = _packed(program, shown, folder, packed)
        if not entry.mode & 0o100:
            raise TrainyardError(
                f"{shown} starts {entry.name}, which is not executable.",
                remedy=f"Run chmod +x {folder / entry.name}, or add its interpreter, as in: python {entry.name}",
            )
        return
    for interpreter in _INTERPRETERS:
        if interpreter.name.fullmatch(posixpath.basename(program)):
            option, value = _started(interpreter, words)
            if option == "m":
                _check_module(value, shown, folder, packed)
            elif not option and _inside(value, alone=True):
                _packed(value, shown, folder, packed)


def _inside(word: str, *, alone: bool = False) -> bool:
    """Return whether a word is a path below the folder.

    :param alone: also accept a name without a slash, as for scripts; programs without a slash are searched on the PATH.
    """
    return f"{word}/".startswith(f"{MOUNT}/") if word.startswith("/") else "/" in word or (alone and bool(word))


def _started(interpreter: _Interpreter, words: Sequence[str]) -> tuple[str, str]:
    """Return what an interpreter starts: "" and a script, `m` and a module, `c` and code; or two empty strings."""
    left = iter(words)
    for word in left:
        if found := interpreter.starts.fullmatch(word):
            return found[1], found[2] or next(left, "")
        if interpreter.valued.fullmatch(word):
            next(left, "")
        elif word == "--":
            return "", next(left, "")
        elif word == "-" or not word.startswith(("-", "+")):
            return "", word.removeprefix("-")
    return "", ""


def _check_module(name: str, shown: str, folder: Path, packed: Mapping[str, Entry]) -> None:
    path = name.replace(".", "/")
    top = path.partition("/")[0]
    if f"{top}.py" not in packed and not any(file.startswith(f"{top}/") for file in packed):
        return
    if f"{path}.py" not in packed and f"{path}/__main__.py" not in packed:
        raise TrainyardError(
            f"{shown} starts the module {name}, but the code folder {folder} has neither {path}.py nor "
            f"{path}/__main__.py.",
            remedy=_remedy(f"{path}.py", packed),
        )


def _packed(word: str, shown: str, folder: Path, packed: Mapping[str, Entry]) -> Entry:
    """Return the entry of the file at a path, with links resolved."""
    name = posixpath.normpath(posixpath.relpath(word, MOUNT) if word.startswith("/") else word)
    real = os.path.relpath(os.path.realpath(folder / name), os.path.realpath(folder))
    if real not in packed:
        why = "is excluded from" if (folder / name).is_file() and not real.startswith("..") else "is not in"
        raise TrainyardError(
            f"{shown} starts {name}, which {why} the code folder {folder}.", remedy=_remedy(name, packed)
        )
    return packed[real]


def _remedy(name: str, packed: Mapping[str, Entry]) -> str:
    close = difflib.get_close_matches(name, packed, n=1)
    return f"Did you mean {close[0]}?" if close else "Add the file, set another one, or check the .trainignore."
