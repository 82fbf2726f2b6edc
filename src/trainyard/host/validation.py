"""Validate new file texts with the program that reads them: a single file, or a main file with its imports."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from .ownership import is_match, matches, read


@dataclass(frozen=True)
class Tree:
    """A main file and the files that it imports, which can only be validated together.

    :param root: path of the main file; `parts`: the pattern in its text that includes the other files.
    :param argv: program and arguments, with `%s` for the main file.
    """

    root: str
    parts: str
    argv: Sequence[str]

    def has(self, path: str) -> bool:
        return path == self.root or is_match(path, self.parts)


def check_file(path: str, text: str, argv: Sequence[str], timeout: float) -> bool:
    """Validate a new text before it is written.

    :return: whether it was validated; false if the program is not installed.
    :raises TrainyardError: the program refuses it.
    """
    if shutil.which(argv[0]) is None:
        return False
    descriptor, candidate = tempfile.mkstemp(prefix="trainyard-", suffix=os.path.splitext(path)[1])
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        run([word.replace("%s", candidate) for word in argv], timeout=timeout)
    except CommandError as error:
        raise TrainyardError(
            f"The new text of {path} is refused by its validator: {error.message}",
            remedy="Correct the variables that determine its text; nothing was written.",
        ) from error
    finally:
        os.unlink(candidate)
    return True


def check_tree(tree: Tree, new: Mapping[str, str | None], timeout: float) -> bool:
    """Validate a main file together with all files that it will import.

    :param new: path -> its new text, None for a removed file; other files are used as they are.
    :return: whether it was validated; false if the program is not installed.
    :raises TrainyardError: the program refuses it; the message contains the path of the faulty file.
    """
    if shutil.which(tree.argv[0]) is None:
        return False
    found = {path: read(path) for path in (tree.root, *matches([tree.parts]))}
    texts = {path: each.text for path, each in found.items() if each}
    texts |= {path: text for path, text in new.items() if text is not None and tree.has(path)}
    present = {path: text for path, text in texts.items() if new.get(path, text) is not None}
    error = _judged(tree, present, timeout)
    if not error:
        return True
    culprit = culprit_of(tree, present, timeout)
    if culprit in new or not culprit:
        remedy = "Correct the variables that determine its text; nothing was written."
    else:
        remedy = f"Correct {culprit} or move it away: this project does not manage it. Nothing was written."
    raise TrainyardError(f"{tree.argv[0]} refuses {culprit or tree.root}: {error}", remedy=remedy)


def culprit_of(tree: Tree, texts: Mapping[str, str], timeout: float) -> str:
    """Return the first file with which the main file is refused; empty if only their combination is."""
    main = {path: text for path, text in texts.items() if path == tree.root}
    if _judged(tree, main, timeout):
        return tree.root
    parts = sorted(set(texts) - set(main))
    return next((path for path in parts if _judged(tree, {**main, path: texts[path]}, timeout)), "")


def _judged(tree: Tree, texts: Mapping[str, str], timeout: float) -> str:
    """Return why the program refuses a copy of the files; empty if it accepts them."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        parts = os.path.join(folder, "parts")
        os.mkdir(parts)
        for path, text in texts.items():
            name, content = os.path.join(parts, os.path.basename(path)), text
            if path == tree.root:
                name = os.path.join(folder, os.path.basename(path))
                content = text.replace(tree.parts, os.path.join(parts, os.path.basename(tree.parts)))
            with open(name, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(content)
        root = os.path.join(folder, os.path.basename(tree.root))
        try:
            run([word.replace("%s", root) for word in tree.argv], timeout=timeout)
        except CommandError as error:
            said = error.message.replace(parts, os.path.dirname(tree.parts))
            return said.replace(folder, os.path.dirname(tree.root))
    return ""
