"""Check that the file that a command starts is in the code folder, so that a typo is found before a pod is created."""

from __future__ import annotations

import difflib
import itertools
import os
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import TrainyardError
from .code_folder import Entry

MOUNT = "/opt/trainyard/code"
"""Path of the code folder in pods, which is their working directory."""


_INTERPRETER = re.compile(r"(?:python|pypy)[0-9.]*|(?:ba|da)?sh")
_SCRIPT = (".py", ".sh")


def check(command: Sequence[str], folder: Path, entries: Sequence[Entry]) -> None:
    """Refuse a command whose file is not among the entries.

    Checked are a program with a relative path (`./run.sh`), and what python or a shell starts: a module in the folder
    (`-m mine.train`), or the first word that ends in `.py` or `.sh`. All other programs are assumed to be in the image.

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
    elif _INTERPRETER.fullmatch(posixpath.basename(program)):
        _check_words(words, shown, folder, packed)


def _check_words(words: Sequence[str], shown: str, folder: Path, packed: Mapping[str, Entry]) -> None:
    """Check the module or script in the words after an interpreter; code (`-c`) has none."""
    for option, word in itertools.pairwise(("", *words)):
        code = option.startswith("-") and option.endswith("c")
        script = word.endswith(_SCRIPT) and not word.startswith("-")
        if option == "-m":
            _check_module(word, shown, folder, packed)
        elif script and not code and _inside(word, alone=True):
            _packed(word, shown, folder, packed)
        if code or script or option == "-m":
            return


def _inside(word: str, *, alone: bool = False) -> bool:
    """Return whether a word is a path below the folder.

    :param alone: also accept a name without a slash, as for scripts; programs without a slash are searched on the PATH.
    """
    return f"{word}/".startswith(f"{MOUNT}/") if word.startswith("/") else "/" in word or (alone and bool(word))


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
