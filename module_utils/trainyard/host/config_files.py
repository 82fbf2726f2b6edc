"""Small configuration files of a host in one plan: whole files, blocks in shared files, stale files, their readers."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.files import digest_of, write
from ..core.plan import Plan, Step
from .patterns import aside_of, is_match, matches

MARKER = "Managed by trainyard"
"""Files that hold this text are ours: only these are removed as stale."""

BLOCK_BEGIN, BLOCK_END = "# BEGIN trainyard", "# END trainyard"


@dataclass(frozen=True)
class File:
    """One wanted file.

    :param path: absolute path; a link is followed.
    :param content: whole text, or with `block` the text between the two marker lines (empty: no block).
    :param mode: permission bits, None leaves an existing file's alone.
    :param validate: argv with `%s` for a file of the new text; left out where the program is not installed.
    :param owner: name of the user, empty leaves an existing file's alone; `group` is the same for the group.
    :param secret: the text is never shown.
    """

    path: str
    content: str
    mode: int | None = 0o644
    block: bool = False
    validate: Sequence[str] = ()
    owner: str = ""
    group: str = ""
    secret: bool = False

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.path.startswith("/") or ".." in parts or any(character < " " for character in self.path):
            raise TrainyardError(
                f"{self.path!r} cannot be the path of a file: it has to be absolute, without `..` and line breaks.",
                remedy="Correct the name in the inventory that it is made from.",
            )


@dataclass(frozen=True)
class Found:
    """A file as it is."""

    text: str
    mode: int
    owner: int
    group: int


@dataclass(frozen=True)
class Command:
    """A program to run whenever the files that match `paths` are not those it last ran with.

    :param by_package: its package runs it when it is installed, so there is nothing to do before.
    """

    name: str
    argv: Sequence[str]
    paths: Sequence[str]
    by_package: bool = False


@dataclass
class HostFiles:
    """The wanted files of a host, compared with what is there.

    :param stale: glob patterns; a match that holds MARKER and is no wanted file is removed.
    :param set_aside: glob patterns; a match that is no wanted file is renamed to `NAME.disabled`.
    :param state_dir: where the digest of each command's last input is kept.
    :param timeout: seconds for one validator or command.
    """

    files: Sequence[File]
    stale: Sequence[str] = ()
    set_aside: Sequence[str] = ()
    commands: Sequence[Command] = ()
    state_dir: str = "/var/lib/trainyard/host_files"
    timeout: float = 120.0
    not_validated: list[str] = field(default_factory=list)
    changed_paths: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        """Compare and plan; nothing is written but temporary files for the validators."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        steps: list[Step] = []
        wanted = {file.path for file in self.files}
        contents: dict[str, str | None] = {}
        for file in self.files:
            old = _read(file.path)
            text = _with_block(old.text if old else "", file.content) if file.block else file.content
            contents[file.path] = text
            if old is None and file.block and not text:
                continue
            mode = file.mode if file.mode is not None else (old.mode if old else 0o644)
            if old and (old.text, old.mode) == (text, mode) and _is_owned(old, file):
                continue
            if old is None or old.text != text:
                self._validate(file, text)
            steps.append(Step(f"Write {file.path}", partial(_write, file, text, mode)))
            before[file.path], after[file.path] = _shown_before(file, old), _shown_after(file, old, text, mode)
        for path in matches(self.stale, wanted):
            found = _read(path)
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
        steps += [step for command in self.commands for step in self._command_steps(command, contents)]
        return Plan(steps, before, after)

    def _validate(self, file: File, new: str) -> None:
        if not file.validate:
            return
        if shutil.which(file.validate[0]) is None:
            self.not_validated.append(file.path)
            return
        descriptor, candidate = tempfile.mkstemp(prefix="trainyard-", suffix=os.path.splitext(file.path)[1])
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(new)
            run([word.replace("%s", candidate) for word in file.validate], timeout=self.timeout)
        except CommandError as error:
            raise TrainyardError(
                f"The new text of {file.path} is refused by its validator: {error.message}",
                remedy="Correct the variables that it is made from; nothing was written.",
            ) from error
        finally:
            os.unlink(candidate)

    def _command_steps(self, command: Command, contents: Mapping[str, str | None]) -> list[Step]:
        inputs: dict[str, str | None] = {}
        for path in matches(command.paths):
            found = _read(path)
            inputs[path] = found.text if found else None
        inputs.update(
            (path, text) for path, text in contents.items() if any(is_match(path, pattern) for pattern in command.paths)
        )
        digest = digest_of({path: text for path, text in inputs.items() if text is not None})
        stamp = os.path.join(self.state_dir, f"{command.name}.sha256")
        recorded = _read(stamp)
        # No record counts as a run on no files.
        if (recorded.text if recorded else digest_of({})) == digest:
            return []
        record = partial(write, stamp, digest, 0o644)
        if command.by_package and shutil.which(command.argv[0]) is None:
            return [Step(f"Leave `{' '.join(command.argv)}` to the installation of its package", record)]

        def act() -> None:
            run(command.argv, timeout=self.timeout)
            record()

        return [Step(f"Run {' '.join(command.argv)}", act)]


def _write(file: File, text: str, mode: int) -> None:
    owner, group = _number(pwd.getpwnam, file.owner), _number(grp.getgrnam, file.group)
    if owner is None or group is None:
        raise TrainyardError(
            f"{file.path} is for {file.owner or 'its owner'} and the group {file.group or 'that it has'}, "
            "and this host has no such name.",
            remedy="Install the package that brings the user or group first.",
        )
    write(file.path, text, mode, owner, group)


def _number(look_up: Callable[[str], Sequence[Any]], name: str) -> int | None:
    """Number of a user or group; -1 for no name, None for a name that the host does not know."""
    try:
        return look_up(name)[2] if name else -1
    except KeyError:
        return None


def _is_owned(found: Found, file: File) -> bool:
    owner, group = _number(pwd.getpwnam, file.owner), _number(grp.getgrnam, file.group)
    return owner in (-1, found.owner) and group in (-1, found.group)


def _read(path: str) -> Found | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            status = os.fstat(stream.fileno())
            return Found(stream.read(), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    except FileNotFoundError:
        return None
    except (IsADirectoryError, NotADirectoryError) as error:
        raise TrainyardError(
            f"{path} cannot be read: {error.strerror}.", remedy="Move away what stands in the way of the file."
        ) from error


def _with_block(text: str, block: str) -> str:
    """The text with its marked block replaced, appended, or (empty block) removed."""
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_BEGIN), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip() == BLOCK_END), None)
    body = [f"{BLOCK_BEGIN}\n", block.rstrip("\n") + "\n", f"{BLOCK_END}\n"] if block.strip() else []
    if begin is not None and end is not None and begin < end:
        return "".join(lines[:begin] + body + lines[end + 1 :])
    if lines and body and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines + body)


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
