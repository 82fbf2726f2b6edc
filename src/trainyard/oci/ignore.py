"""`.trainignore`: patterns of files in a code folder that are excluded from its image.

It supports a subset of `.gitignore`, one pattern per line. `#` starts a comment; `*`, `?` and `[a-z]` never match `/`:

    *.log          files and folders with such a name, in any folder
    data/          folders with that name, in any folder
    /notes/*.txt   with a leading or inner slash: relative to the folder of the `.trainignore`
    !test.pem      packed although it looks like a secret (`secrets`); does not include an excluded file again

Other syntax of `.gitignore` (`**`, backslashes) is refused, because a misunderstood pattern could exclude code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ..core.errors import TrainyardError

FILE = ".trainignore"
ALWAYS = (".git", "__pycache__", ".ipynb_checkpoints", FILE)
"""Names that are always excluded, in any folder."""


@dataclass(frozen=True)
class Rule:
    """One pattern.

    :param patterns: patterns of a path's parts, in order; with `anywhere`, a single pattern of the last part.
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
    """All patterns of a folder.

    :param allowed: patterns of lines with `!`.
    """

    rules: tuple[Rule, ...]
    allowed: tuple[Rule, ...] = ()

    def leaves_out(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Return whether a path, relative to the folder, or one of its parent folders is excluded."""
        return _match(self.rules, path, is_folder)

    def allows(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Return whether a path, or one of its parent folders, is packed although it looks like a secret."""
        return _match(self.allowed, path, is_folder)


def _match(rules: Sequence[Rule], path: PurePosixPath, is_folder: bool) -> bool:
    parts = path.parts
    return any(
        rule.matches(parts[:end], is_folder or end < len(parts)) for end in range(1, len(parts) + 1) for rule in rules
    )


def read(folder: Path) -> Rules:
    """Return the rules of a folder: the default ones, and those in its `.trainignore` if it has one.

    :raises TrainyardError: the file cannot be read, or contains an unsupported pattern.
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
            f"{path}, line {number}: {line} is not a pattern that {FILE} supports.",
            remedy="Use names or paths with *, ? and [a-z], without ** and backslashes.",
        )
    return Rule(patterns, anywhere="/" not in pattern.rstrip("/"), folders_only=pattern.endswith("/"))
