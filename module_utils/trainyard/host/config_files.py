"""Small configuration files of a host in one plan: whole files, blocks in shared files, stale files, their readers."""

from __future__ import annotations

import errno
import fnmatch
import glob
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import Plan, Step

MARKER = "Managed by trainyard"
"""Files that hold this text are ours: only these are removed as stale."""

BLOCK_BEGIN, BLOCK_END = "# BEGIN trainyard", "# END trainyard"
ASIDE_SUFFIX = ".disabled"
"""apt, and most programs that read a directory, ignore names with this ending without a notice."""

COMMAND_TIMEOUT = 120.0
VALIDATE_TIMEOUT = 30.0


@dataclass(frozen=True)
class File:
    """One wanted file.

    :param path: absolute path; a link is followed.
    :param content: whole text, or with `block` the text between the two marker lines (empty: no block).
    :param mode: permission bits, None leaves an existing file's alone.
    :param validate: argv with `%s` for a file of the new text; left out where the program is not installed.
    """

    path: str
    content: str
    mode: int | None = 0o644
    block: bool = False
    validate: Sequence[str] = ()


@dataclass(frozen=True)
class Command:
    """A program to run whenever the files that match `paths` are not those it last ran with."""

    name: str
    argv: Sequence[str]
    paths: Sequence[str]


@dataclass
class HostFiles:
    """The wanted files of a host, compared with what is there.

    :param stale: glob patterns; a match that holds MARKER and is no wanted file is removed.
    :param set_aside: glob patterns; a match that is no wanted file is renamed to `NAME.disabled`.
    :param state_dir: where the digest of each command's last input is kept.
    """

    files: Sequence[File]
    stale: Sequence[str] = ()
    set_aside: Sequence[str] = ()
    commands: Sequence[Command] = ()
    state_dir: str = "/var/lib/trainyard/host_files"
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
            old, old_mode = _read(file.path)
            new = _with_block(old or "", file.content) if file.block else file.content
            contents[file.path] = new
            mode = file.mode if file.mode is not None else (old_mode if old_mode is not None else 0o644)
            if (old == new and old_mode == mode) or (file.block and old is None and not new):
                continue
            if old != new:
                self._validate(file, new)
            steps.append(Step(f"Write {file.path}", partial(write, file.path, new, mode)))
            before[file.path] = _shown(old, old_mode)
            after[file.path] = _shown(new, mode)
        for path in _matches(self.stale, wanted):
            if MARKER in (_read(path)[0] or ""):
                contents[path] = None
                steps.append(Step(f"Remove stale {path}", partial(os.unlink, path)))
                before[path], after[path] = "present", "absent"
        for path in _matches(self.set_aside, wanted):
            contents[path] = None
            steps.append(Step(f"Rename {path} to {path}{ASIDE_SUFFIX}", partial(os.replace, path, path + ASIDE_SUFFIX)))
            before[path], after[path] = "present", f"renamed to {path}{ASIDE_SUFFIX}"
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
            run([word.replace("%s", candidate) for word in file.validate], timeout=VALIDATE_TIMEOUT)
        except CommandError as error:
            raise TrainyardError(
                f"The new text of {file.path} is refused by its validator: {error.message}",
                remedy="Correct the variables that it is made from; nothing was written.",
            ) from error
        finally:
            os.unlink(candidate)

    def _command_steps(self, command: Command, contents: Mapping[str, str | None]) -> list[Step]:
        inputs = {path: _read(path)[0] for pattern in command.paths for path in glob.glob(pattern)}
        inputs.update(
            (path, text)
            for path, text in contents.items()
            if any(fnmatch.fnmatch(path, pattern) for pattern in command.paths)
        )
        digest = digest_of({path: text for path, text in inputs.items() if text is not None})
        stamp = os.path.join(self.state_dir, f"{command.name}.sha256")
        recorded = _read(stamp)[0]
        # A command that never ran and has nothing to read has nothing to do.
        if (recorded or digest_of({})) == digest:
            return []

        def act() -> None:
            run(command.argv, timeout=COMMAND_TIMEOUT)
            write(stamp, digest, 0o644)

        return [Step(f"Run {' '.join(command.argv)}", act)]


def digest_of(texts: Mapping[str, str]) -> str:
    """SHA-256 over names and texts, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(texts):
        for part in (name, texts[name]):
            data = part.encode(errors="surrogateescape")
            total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


def write(path: str, text: str, mode: int) -> None:
    """Write a text file so that a reader, or the next boot after a power cut, finds the old text or the new one.

    :raises TrainyardError: the file system refuses.
    """
    target = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".trainyard-", dir=os.path.dirname(target))
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
                os.fchmod(stream.fileno(), mode)
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except OSError as error:
            os.unlink(temporary)
            # A bind-mounted file (/etc/hosts in a container) can only be written in place.
            if error.errno != errno.EBUSY:
                raise
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
            os.chmod(target, mode)
    except OSError as error:
        raise TrainyardError(f"{path} cannot be written: {error.strerror}.") from error


def _read(path: str) -> tuple[str | None, int | None]:
    """Text and permission bits, or None twice where there is no file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(), stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
    except FileNotFoundError:
        return None, None
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


def _matches(patterns: Sequence[str], wanted: set[str]) -> list[str]:
    return sorted({path for pattern in patterns for path in glob.glob(pattern)} - wanted)


def _shown(text: str | None, mode: int | None) -> dict[str, Any] | None:
    if text is None:
        return None
    return {"mode": f"{mode:04o}", "text": text.splitlines()}
