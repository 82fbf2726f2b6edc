"""Plan small configuration files of a host: folders, whole files, blocks, stale files, and programs that read them.

Parts: the folders with their owners; the files. Root creates and chowns folders without following links of other users.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core import safe_paths
from ..core.command import run
from ..core.errors import TrainyardError
from ..core.files import digest_of, write
from ..core.plan import Change, Plan, Step
from .ownership import MARKER, Found, aside_of, is_foreign, is_match, kept_as, matches, read, refusal, with_block
from .validation import Tree, check_file, check_tree


@dataclass(frozen=True)
class Folder:
    """One desired folder.

    :param path: absolute path.
    :param mode: permission bits.
    :param owner: user name or ID; empty keeps that of an existing folder. `group` is the same for the group.
    """

    path: str
    mode: int = 0o755
    owner: str = ""
    group: str = ""


def plan_folders(folders: Sequence[Folder]) -> tuple[list[Step], dict[str, Any], dict[str, Any]]:
    """Return the steps that create or correct folders, with their observed and desired states."""
    steps: list[Step] = []
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for folder in folders:
        found = safe_paths.status(folder.path)
        if found and not stat.S_ISDIR(found.st_mode):
            raise TrainyardError(f"{folder.path} is not a folder.", remedy="Move it away, and run the playbook again.")
        owner, group = number(pwd.getpwnam, folder.owner), number(grp.getgrnam, folder.group)
        owned = found and owner in (-1, found.st_uid) and group in (-1, found.st_gid)
        if found and owned and stat.S_IMODE(found.st_mode) == folder.mode:
            continue
        steps.append(Step(f"Create the folder {folder.path}", partial(_make, folder)))
        before[folder.path] = f"{stat.S_IMODE(found.st_mode):04o} {found.st_uid}:{found.st_gid}" if found else None
        after[folder.path] = f"{folder.mode:04o} {folder.owner}:{folder.group}"
    return steps, before, after


def _make(folder: Folder) -> None:
    owner, group = number(pwd.getpwnam, folder.owner), number(grp.getgrnam, folder.group)
    if owner is None or group is None:
        raise TrainyardError(
            f"The owner {folder.owner}:{folder.group} of {folder.path} does not exist on this host.",
            remedy="Create the user and the group first.",
        )
    safe_paths.make_folder(folder.path, folder.mode, owner, group)


def number(look_up: Callable[[str], Sequence[Any]], name: str) -> int | None:
    """Return the ID of a user or group; -1 for an empty name, None for a name that the host does not know."""
    if name.isdigit():
        return int(name)
    try:
        return int(look_up(name)[2]) if name else -1
    except KeyError:
        return None


@dataclass(frozen=True)
class File:
    """One desired file.

    :param path: absolute path; a link is followed if root made it (core/safe_paths.py).
    :param content: whole text, or with `block` the text between the two marker lines (empty: no block).
    :param mode: permission bits; None keeps those of an existing file.
    :param validate: argv with `%s` for a file with the new text; skipped if the program is not installed.
    :param owner: user name; empty keeps that of an existing file. `group` is the same for the group.
    :param secret: the text is never shown.
    :param also: equivalent texts; a file with one of them is not changed.
    :param own: only this project uses the path, so an existing file is ours even without the marker.
    :param ours: line beginnings that identify our texts, see `is_foreign`.
    :param beside: path next to which the owner's file is kept, if not next to this one.
    """

    path: str
    content: str
    mode: int | None = 0o644
    block: bool = False
    validate: Sequence[str] = ()
    owner: str = ""
    group: str = ""
    secret: bool = False
    also: Sequence[str] = ()
    own: bool = False
    ours: Sequence[str] = ()
    beside: str = ""

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.path.startswith("/") or ".." in parts or any(character < " " for character in self.path):
            raise TrainyardError(
                f"{self.path!r} cannot be the path of a file: it must be absolute, without `..` and line breaks.",
                remedy="Correct the name in the inventory that this path contains.",
            )


@dataclass(frozen=True)
class Command:
    """A program to run if the files that match `paths` changed since its last run.

    :param by_package: the package runs the program at its installation, so it is skipped if it is not installed.
    """

    name: str
    argv: Sequence[str]
    paths: Sequence[str]
    by_package: bool = False


@dataclass
class HostFiles:
    """The desired files of a host.

    :param stale: glob patterns; a matching file with MARKER that is not a desired file is removed.
    :param set_aside: glob patterns; a matching file that is not a desired file is renamed to `NAME.disabled`.
    :param trees: main files that are validated together with their imports if one of these files changes.
    :param replace: paths of the owner's files that may be replaced; a copy of the old file is kept.
    :param state_dir: folder with the digest of each command's last input.
    :param timeout: seconds for one validator or command.
    :param folders: folders created before the files are written.
    """

    files: Sequence[File]
    stale: Sequence[str] = ()
    set_aside: Sequence[str] = ()
    commands: Sequence[Command] = ()
    trees: Sequence[Tree] = ()
    replace: Sequence[str] = ()
    state_dir: str = "/var/lib/trainyard/host_files"
    timeout: float = 120.0
    folders: Sequence[Folder] = ()
    not_validated: list[str] = field(default_factory=list)
    changed_paths: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        """Compare and plan; only temporary files for the validators are written.

        :raises TrainyardError: a validator refuses a text, or a file belongs to the owner and may not be replaced.
        """
        steps, before, after = plan_folders(self.folders)
        wanted = {file.path for file in self.files}
        contents: dict[str, str | None] = {}
        changed: list[tuple[File, Found | None, str]] = []
        for file in self.files:
            old = read(file.path)
            text = with_block(old.text if old else "", file.content) if file.block else file.content
            text = old.text if old and old.text in file.also else text
            contents[file.path] = text
            if old is None and file.block and not text:
                continue
            mode = file.mode if file.mode is not None else (old.mode if old else 0o644)
            if old and (old.text, old.mode) == (text, mode) and _is_owned(old, file):
                continue
            if old is None or old.text != text:
                changed.append((file, old, text))
            steps.append(Step(f"Write {file.path}", partial(_write, file, text, mode)))
            before[file.path], after[file.path] = _shown_before(file, old), _shown_after(file, old, text, mode)
        for path in matches(self.stale, wanted):
            found = read(path)
            if found and MARKER in found.text:
                contents[path] = None
                steps.append(Step(f"Remove stale {path}", partial(os.unlink, path)))
                before[path], after[path] = "present", "absent"
        for path in matches(self.set_aside, wanted):
            contents[path] = None
            aside = aside_of(path)
            steps.append(Step(f"Rename {path} to {aside}", partial(os.rename, path, aside)))
            before[path], after[path] = "present", f"renamed to {aside}"
        self.changed_paths = sorted(before)
        steps = self._copies(changed) + steps
        self._validate(changed, contents)
        written = bool(before)
        steps += [step for command in self.commands for step in self._command_steps(command, contents, written)]
        return Plan(steps, before, after)

    def _copies(self, changed: Sequence[tuple[File, Found | None, str]]) -> list[Step]:
        """Return the steps that keep copies of the owner's files; refuse files that may not be replaced."""
        foreign = [
            file
            for file, old, text in changed
            if old and not (file.block or file.own) and is_foreign(file.path, old.text, text, file.ours)
        ]
        if refused := [file.path for file in foreign if file.path not in self.replace]:
            raise refusal(refused).as_error()
        kept = [(file.path, kept_as(file.beside or file.path)) for file in foreign]
        return [Step(f"Keep a copy of {path} as {copy}", partial(shutil.copy2, path, copy)) for path, copy in kept]

    def _validate(self, changed: Sequence[tuple[File, Found | None, str]], contents: Mapping[str, str | None]) -> None:
        for file, _, text in changed:
            if file.validate and not check_file(file.path, text, file.validate, self.timeout):
                self.not_validated.append(file.path)
        for tree in self.trees:
            paths = [file.path for file, _, _ in changed if tree.has(file.path)]
            gone = any(text is None and tree.has(path) for path, text in contents.items())
            if (paths or gone) and not check_tree(tree, contents, self.timeout):
                self.not_validated += paths

    def _command_steps(self, command: Command, contents: Mapping[str, str | None], written: bool) -> list[Step]:
        """Return the step that runs a program, if its input files changed since its last run.

        :param written: this plan writes files, so that the run is a consequence. Otherwise an interrupted run wrote
            them, and the missing run is a difference of its own.
        """
        inputs: dict[str, str | None] = {}
        for path in matches(command.paths):
            found = read(path)
            inputs[path] = found.text if found else None
        inputs.update(
            (path, text) for path, text in contents.items() if any(is_match(path, pattern) for pattern in command.paths)
        )
        digest = digest_of({path: text for path, text in inputs.items() if text is not None})
        stamp = os.path.join(self.state_dir, f"{command.name}.sha256")
        recorded = read(stamp)
        # A missing record is equivalent to a run without files.
        if (recorded.text if recorded else digest_of({})) == digest:
            return []
        record = partial(write, stamp, digest, 0o644)
        words = " ".join(command.argv)
        change = Change(words, "not run", "run", follows=written)
        if command.by_package and shutil.which(command.argv[0]) is None:
            return [Step(f"Skip `{words}`: the installation of its package runs it", record, [change])]

        def act() -> None:
            run(command.argv, timeout=self.timeout)
            record()

        return [Step(f"Run {words}", act, [change])]


def _write(file: File, text: str, mode: int) -> None:
    owner, group = number(pwd.getpwnam, file.owner), number(grp.getgrnam, file.group)
    if owner is None or group is None:
        raise TrainyardError(
            f"The owner {file.owner or '(unchanged)'} or the group {file.group or '(unchanged)'} of {file.path} does "
            "not exist on this host.",
            remedy="Install the package that creates the user or group first.",
        )
    write(file.path, text, mode, owner, group)


def _is_owned(found: Found, file: File) -> bool:
    owner, group = number(pwd.getpwnam, file.owner), number(grp.getgrnam, file.group)
    return owner in (-1, found.owner) and group in (-1, found.group)


def _shown_before(file: File, old: Found | None) -> dict[str, Any] | None:
    if old is None:
        return None
    try:
        names = {"owner": pwd.getpwuid(old.owner)[0], "group": grp.getgrgid(old.group)[0]}
    except KeyError:
        names = {"owner": str(old.owner), "group": str(old.group)}
    return {
        "mode": f"{old.mode:04o}",
        **{key: name for key, name in names.items() if getattr(file, key)},
        "text": "secret" if file.secret else old.text.splitlines(),
    }


def _shown_after(file: File, old: Found | None, text: str, mode: int) -> dict[str, Any]:
    hidden = "secret" if old and old.text == text else "another secret"
    return {
        "mode": f"{mode:04o}",
        **{key: getattr(file, key) for key in ("owner", "group") if getattr(file, key)},
        "text": hidden if file.secret else text.splitlines(),
    }
