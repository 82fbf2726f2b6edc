"""`.trainignore`: what of a folder of code does not belong in its image.

A part of `.gitignore`'s language, one pattern a line; `#` begins a comment, `*`, `?` and `[a-z]` never stand for `/`:

    *.log          whatever has such a name, in any folder
    data/          folders of that name, in any folder
    /notes/*.txt   with a slash in front or inside: from the folder of the `.trainignore`
    !test.pem      packed, although it looks like a secret (`secrets`); it brings back nothing that is left out

What else `.gitignore` knows (`**`, a backslash) is refused: misunderstood, it would leave out code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ..core.errors import TrainyardError

FILE = ".trainignore"
ALWAYS = (".git", "__pycache__", ".ipynb_checkpoints", FILE)
"""Names that are left out of every image, in any folder."""


@dataclass(frozen=True)
class Rule:
    """One pattern.

    :param patterns: for the parts of a path, in order; a single one for the last part alone where `anywhere` is set.
    """

    patterns: tuple[str, ...]
    anywhere: bool = True
    folders_only: bool = False

    def matches(self, parts: Sequence[str], is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        names = parts[-1:] if self.anywhere else parts
        return len(names) == len(self.patterns) and all(map(fnmatchcase, names, self.patterns))


@dataclass(frozen=True)
class Rules:
    """All patterns that hold for a folder.

    :param allowed: those of lines with `!`.
    """

    rules: tuple[Rule, ...]
    allowed: tuple[Rule, ...] = ()

    def leaves_out(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Whether a path, relative to the folder, or a folder on the way to it is left out."""
        return _match(self.rules, path, is_folder)

    def allows(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Whether a path, or a folder on the way to it, is packed although it looks like a secret."""
        return _match(self.allowed, path, is_folder)


def _match(rules: Sequence[Rule], path: PurePosixPath, is_folder: bool) -> bool:
    parts = path.parts
    return any(
        rule.matches(parts[:end], is_folder or end < len(parts)) for end in range(1, len(parts) + 1) for rule in rules
    )


def read(folder: Path) -> Rules:
    """The rules of a folder: those that always hold, and its `.trainignore` where it has one.

    :raises TrainyardError: it cannot be read, or has a line of which only `.gitignore` knows the meaning.
    """
    path = folder / FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    except (OSError, UnicodeDecodeError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.") from error
    numbered = [(number, line.rstrip()) for number, line in enumerate(lines, 1)]
    own = [_rule(path, number, line) for number, line in numbered if not line.startswith("!")]
    allowed = [_rule(path, number, line) for number, line in numbered if line.startswith("!")]
    return Rules((*(Rule((name,)) for name in ALWAYS), *filter(None, own)), tuple(filter(None, allowed)))


def _rule(path: Path, number: int, line: str) -> Rule | None:
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    patterns = tuple(pattern.strip("/").split("/"))
    if pattern.startswith("!") or "**" in line or "\\" in line or not {"", ".", ".."}.isdisjoint(patterns):
        raise TrainyardError(
            f"{path}, line {number}: {line} is not a pattern that {FILE} knows.",
            remedy="Write names or paths with *, ? and [a-z]; there is no ** and no backslash.",
        )
    return Rule(patterns, anywhere="/" not in pattern.rstrip("/"), folders_only=pattern.endswith("/"))
