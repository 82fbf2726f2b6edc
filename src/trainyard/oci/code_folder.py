"""Select the files of a code folder for its image, and refuse files that cannot be packed.

Parts: `.trainignore`; the selection. `.trainignore` has patterns of files that are excluded from the image, in the
language of `.gitignore`. A line with `!` also packs a file that looks like a secret (`secrets`), such as `!test.pem`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from ..core.errors import TrainyardError
from . import secrets

FILE = ".trainignore"
ALWAYS = (".git", "__pycache__", ".ipynb_checkpoints", FILE)
"""Names that are always excluded, in any folder."""


@dataclass(frozen=True)
class Rules:
    """All patterns of a folder.

    :param patterns: a `pathspec.GitIgnoreSpec`; None if the folder has no patterns of its own.
    """

    patterns: Any = None

    def leaves_out(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Return whether a path, relative to the folder, or one of its parent folders is excluded."""
        if not set(path.parts).isdisjoint(ALWAYS):
            return True
        parents = [f"{parent}/" for parent in list(path.parents)[:-1]]
        return any(self._included(each) is False for each in (*parents, f"{path}/" if is_folder else str(path)))

    def allows(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Return whether a line with `!` packs a path, or a parent folder, although it looks like a secret."""
        return self._included(f"{path}/" if is_folder else str(path)) is True

    def _included(self, name: str) -> bool | None:
        """Return whether the last pattern that matches a name includes it; None if no pattern matches."""
        excluded = self.patterns.check_file(name).include if self.patterns else None
        return None if excluded is None else not excluded


def read_ignore(folder: Path) -> Rules:
    """Return the rules of a folder: the default ones, and those in its `.trainignore` if it has one.

    :raises TrainyardError: the file cannot be read, or contains an invalid pattern.
    """
    path = folder / FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return Rules()
    except (OSError, UnicodeDecodeError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.") from error
    # Imported here: a builder packs folders without patterns, and has no library.
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as error:
        raise TrainyardError(
            f"{path} cannot be read, because this Python has no package pathspec.",
            remedy="Run make env; on another host, install python3-pathspec.",
        ) from error

    for number, line in enumerate(lines, 1):
        if not _is_valid(line.rstrip(), GitIgnoreSpec):
            raise TrainyardError(
                f"{path}, line {number}: {line} is not a pattern.",
                remedy="Use the language of .gitignore, and paths below this folder.",
            )
    return Rules(GitIgnoreSpec.from_lines(lines))


def _is_valid(line: str, spec: Any) -> bool:
    """Return whether a line is a comment or a pattern that can match: git silently ignores `[ab` and `../data`."""
    if not line or line.startswith("#"):
        return True
    parts = line.removeprefix("!").removeprefix("/").removesuffix("/").split("/")
    try:
        patterns = spec.from_lines([line]).patterns
    except ValueError:
        return False
    return patterns[0].regex is not None and {"", ".", ".."}.isdisjoint(parts) and not line.startswith("!!")


LIMIT = 64 << 20
"""Maximum total size in bytes. A larger folder contains data, which belongs in an image or a claim of its own."""
NAMED = 5
"""Most files that an error lists."""
Place = tuple[Path, PurePosixPath]
WHITEOUT = ".wh."
"""Prefix of a name with which a layer deletes a file of lower layers (OCI image specification, layer.md)."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or link.

    :param name: path below the folder, with slashes.
    :param mode: permission bits; the image keeps only the owner's executable bit.
    :param size: size of a file in bytes.
    :param target: target of a link; empty otherwise.
    """

    name: str
    mode: int
    size: int = 0
    target: str = ""
    is_folder: bool = False

    @property
    def is_file(self) -> bool:
        return not self.is_folder and not self.target


def read(folder: Path, limit: int | None = LIMIT, *, own: bool = False) -> list[Entry]:
    """Return the entries to pack, sorted by name: files and links that no rule excludes, and their parent folders.

    Empty folders are left out, as in git, so that a clone gives the same image.

    :param limit: maximum total size in bytes; None for data.
    :param own: data of this project, which is not searched for secrets.
    :raises TrainyardError: the folder is missing, empty or too large, or contains secrets or files that cannot be
        packed.
    """
    if not os.path.isdir(folder):
        raise TrainyardError(
            f"The code folder {folder} {'is not a folder' if os.path.exists(folder) else 'does not exist'}.",
            remedy="Set the folder that contains the program.",
        )
    found: dict[str, Entry] = {}
    faults = []
    rules = read_ignore(folder)
    kept: dict[str, str] = {}
    for path, relative in _walk(folder, rules, None if own else kept):
        fault = _fault(folder, path, relative)
        if not own and not rules.allows(relative) and (secret := secrets.in_name(path)):
            kept[str(relative)] = secret
            continue
        if fault:
            faults.append(f"{relative} {fault}")
        else:
            found[str(relative)] = _entry(path, relative)
            found |= {str(parent): Entry(str(parent), 0o755, is_folder=True) for parent in list(relative.parents)[:-1]}
    if faults:
        raise TrainyardError(
            f"The code folder {folder} cannot be packed: {_some(faults)}.",
            remedy=f"Remove these files, or exclude them by lines in {FILE}.",
        )
    _refuse_secrets(folder, kept)
    if not found:
        raise TrainyardError(
            f"The code folder {folder} has no file that could be packed.",
            remedy=f"Set the folder that contains the program, or check what its {FILE} excludes.",
        )
    entries = [found[name] for name in sorted(found)]
    if limit is not None:
        _check_size(folder, entries, limit)
    if not own:
        # After the size check, because contents are read as a whole.
        read = [entry.name for entry in entries if entry.is_file and not rules.allows(PurePosixPath(entry.name))]
        _refuse_secrets(folder, {name: fault for name in read if (fault := secrets.in_content(folder / name))})
    return entries


def _refuse_secrets(folder: Path, kept: Mapping[str, str]) -> None:
    """Refuse a folder with secrets.

    :param kept: name of a file or folder -> why it is not packed.
    """
    if kept:
        raise TrainyardError(
            f"The code folder {folder} would be packed with its secrets: "
            f"{_some([f'{name} {fault}' for name, fault in kept.items()])}.",
            remedy=f"Remove these files, or exclude them by lines in {FILE}. If one is no secret, allow it by "
            f"a line with ! there, such as !{min(kept)}.",
        )


def _walk(folder: Path, rules: Rules, kept: dict[str, str] | None) -> Iterator[Place]:
    """Yield files and links that no rule excludes: the path, and the path below the folder.

    :param kept: receives the folders with secrets, which are not entered; None to skip the search for secrets.
    """
    for place, folders, files in os.walk(folder, onerror=_unreadable):
        below = PurePosixPath(Path(place).relative_to(folder))
        fault = secrets.in_folder(below.name, files) if kept is not None and below.name else ""
        if kept is not None and fault and not rules.allows(below, is_folder=True):
            kept[str(below)] = fault
            folders.clear()
            continue
        # A link to a folder is packed as a link, and not entered.
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = [
            name for name in folders if name not in links and not rules.leaves_out(below / name, is_folder=True)
        ]
        for name in (*links, *files):
            if not rules.leaves_out(below / name):
                yield Path(place, name), below / name


def _unreadable(error: OSError) -> NoReturn:
    raise TrainyardError(f"{error.filename} cannot be read: {error.strerror}.") from error


def _entry(path: Path, relative: PurePosixPath) -> Entry:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Entry(str(relative), 0o777, target=os.readlink(path))
    return Entry(str(relative), status.st_mode & 0o777, size=status.st_size)


def _fault(folder: Path, path: Path, relative: PurePosixPath) -> str:
    """Return why a file or link cannot be packed; empty if it can."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        # An absolute link would have another target in a pod.
        inside = not os.path.isabs(target) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
        return "" if inside else f"is a link that leads out of the folder, to {target}"
    if not stat.S_ISREG(mode):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
        return f"is {kind}"
    if any(part.startswith(WHITEOUT) for part in relative.parts):
        return f"has a name with the prefix {WHITEOUT}, which deletes a file in an image"
    try:
        str(relative).encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    return "" if os.access(path, os.R_OK, effective_ids=True) else "cannot be read"


def _check_size(folder: Path, entries: Sequence[Entry], limit: int) -> None:
    total = sum(entry.size for entry in entries)
    if total > limit:
        biggest = sorted(entries, key=lambda entry: -entry.size)[:NAMED]
        raise TrainyardError(
            f"The code folder {folder} has {_mib(total)}, at most {limit >> 20} MiB are packed; the largest files are "
            f"{', '.join(f'{entry.name} ({_mib(entry.size)})' for entry in biggest if entry.is_file)}.",
            remedy=f"Exclude data and results by lines in {FILE}. Put data into an image or a claim of its own.",
        )


def _some(faults: Sequence[str]) -> str:
    shown = "; ".join(sorted(faults)[:NAMED])
    return shown + (f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else "")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
