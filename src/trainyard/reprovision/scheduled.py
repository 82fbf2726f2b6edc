"""What the timer starts: it chooses the revision, and becomes the program of that revision in a worktree of its own.

What decides about revisions is installed with the schedule (`schedule.json`), and is no part of any revision.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.command import run
from ..core.errors import TrainyardError
from ..core.untrusted import clean
from .deadline import VARIABLE as DEADLINE
from .deadline import Deadline, deadline
from .repository import Repository, Wanted
from .revision import VARIABLE, Revision
from .schedule import seconds

CANNOT_TELL, BUSY = 2, 4
"""Exit statuses where no revision is to be had, and where another start is at work; docs/reprovisioning.md has all."""

LOCK = "run.lock"
"""Beside the repository: held by the one start that is at work, from before it fetches to the end of its program."""

TIMER = "trainyard-reprovision.timer"
DEFAULT_TIMEOUT = 3600
"""Seconds; as of reprovision_timeout."""
UNIT_TIMEOUT = 86_400
"""Seconds for a schedule.json that was written before it held the timeout: the unit's own limit ends a run before."""

MISSED_AFTER = 60.0
"""Seconds after the timer's own start, beside its delay, within which a run makes up for one that was missed."""

BY_HAND = ("approve", "show", "status")
"""What a person calls of `trainyard reprovision` on this machine. A run is the unit's, which has the credentials."""

CONVERGE = ("converge", "--mode=converge")
# An unexpected error ends as "cannot tell".
_RUN = f"""import runpy, sys, traceback
try:
    runpy.run_module("trainyard", run_name="__main__", alter_sys=True)
except Exception:
    traceback.print_exc()
    sys.exit({CANNOT_TELL})"""


@dataclass(frozen=True)
class Schedule:
    """What the role has written.

    :param folder: of repository, worktrees and environment.
    :param inventory: of the site, relative to the checkout.
    :param overlay: further inventory, which says what differs on this machine.
    :param delay: as systemd's RandomizedDelaySec.
    :param timeout: seconds from the start of the unit, after which a run begins nothing more.
    """

    folder: Path
    inventory: str
    overlay: Path
    mode: str
    delay: str
    wanted: Wanted
    timeout: int = DEFAULT_TIMEOUT

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """
        :raises TrainyardError: the file is missing or not what the role writes.
        """
        try:
            given: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            signers = Path(given["signers"]) if given["signers"] else None
            wanted = Wanted(given["repository"], given["revision"], signers, given["requirements"])
            folder, overlay = Path(given["folder"]), Path(given["overlay"])
            # One that an older playbook has written does not have it.
            timeout = int(given.get("timeout", UNIT_TIMEOUT))
            return cls(folder, given["inventory"], overlay, given["mode"], given["delay"], wanted, timeout)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TrainyardError(
                f"The schedule {path} cannot be read: {error}.", remedy="Run playbooks/reprovision.yml again."
            ) from error


def main(argv: Sequence[str]) -> int:
    """Become the program of the chosen revision, or remove what ended runs have left (`--clean`).

    :param argv: path of schedule.json; `--clean`, or options for `trainyard reprovision run`.
    :returns: exit status; only where no program could be started.
    """
    try:
        schedule = Schedule.read(Path(argv[0]))
        ends = deadline(schedule.timeout, environ={})
        repository = repository_of(schedule, ends)
        if "--clean" in argv:
            # A start that is at work begins with the same.
            repository.clean_unless_used()
            return 0
        # First of all: whoever is refused has fetched and checked out nothing, and is not kept waiting by who does.
        other = alone(schedule.folder / "git" / LOCK)
        if other:
            print(f"Error: Another run of the schedule is at work: process {other}.", file=sys.stderr)
            return BUSY
        # Said by systemd where a timer has started the service, and not somebody by hand.
        missed = os.environ.get("TRIGGER_UNIT") == TIMER and timer_is_young(schedule.delay)
        start(schedule, repository, argv[1:], ends, missed=missed)
    except (TrainyardError, OSError) as error:
        print(clean(f"Error: {error}"), file=sys.stderr)
    return CANNOT_TELL


def by_hand(
    path: str, words: Sequence[str], become: Callable[[str, list[str], Mapping[str, str]], object] = os.execve
) -> int:
    """Become the installed program, to show the schedule's reports or to approve one.

    :param path: of schedule.json.
    :param words: one of BY_HAND with its arguments.
    :returns: exit status; only where no program could be started.
    """
    try:
        if not words or words[0] not in BY_HAND:
            raise TrainyardError(
                "By hand this takes approve REPORT, show [REPORT] or status.",
                remedy="A run is `systemctl start trainyard-reprovision`.",
            )
        schedule = Schedule.read(Path(path))
        root = schedule.folder / "git" / "installed"
        program, environ = _program(schedule, root, words)
        # Of the caller's environment, which is another user's, no more than who it is and how wide the screen.
        kept = {name: os.environ[name] for name in ("SUDO_USER", "TERM", "COLUMNS") if name in os.environ}
        os.chdir(root)
        become(program[0], program, {**kept, "LANG": "C.UTF-8", "HOME": str(schedule.folder / "home"), **environ})
    except (TrainyardError, OSError) as error:
        print(clean(f"Error: {error}"), file=sys.stderr)
    return CANNOT_TELL


def alone(path: Path) -> str:
    """Take the lock of all starts for as long as this process lives, whatever program it becomes.

    :returns: nothing, or the number of the process that has it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Empty for a moment after it was taken.
        other = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        return other
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    os.set_inheritable(descriptor, True)
    return ""


def repository_of(schedule: Schedule, ends: Deadline) -> Repository:
    """The repository that the role has made, with the folder of its worktrees."""
    folder = schedule.folder
    return Repository(folder / "git" / "repository.git", folder / "worktrees", ends.clock, ends)


def start(
    schedule: Schedule,
    repository: Repository,
    options: Sequence[str],
    ends: Deadline,
    *,
    missed: bool = False,
    clock: Clock = CLOCK,
    become: Callable[[str, list[str], Mapping[str, str]], object] = os.execve,
) -> None:
    """Choose the revision, check it out, and become its program.

    :param options: for `trainyard reprovision run`, in the place of the schedule's mode.
    :param ends: of the whole run, which its program gets in its environment.
    :param missed: whether the run is made up for one that the machine has slept through.
    :raises TrainyardError: there is no revision.
    """
    with repository.locked():
        repository.clean()
        revision = repository.take(schedule.wanted)
        name = f"{int(clock.time())}-{os.getpid()}"
        root = repository.check_out(revision.commit, name)
    program, environ = command(schedule, revision, root, options, missed=missed)
    os.chdir(root)
    become(program[0], program, {**os.environ, **environ, DEADLINE: f"{ends.ends:.3f}"})


def command(
    schedule: Schedule, revision: Revision, root: Path, options: Sequence[str], *, missed: bool
) -> tuple[list[str], dict[str, str]]:
    """The program with its arguments, and what is added to its environment."""
    mode = list(options) or ["--mode", schedule.mode]
    late = missed and not {*CONVERGE}.isdisjoint(mode)
    note = "The scheduled time was missed while the machine was off: this run changes nothing." if late else ""
    said = replace(revision, note=" ".join(filter(None, (revision.note, note))))
    if late or not revision.may_converge:
        mode = [word.replace("converge", "report") if word in CONVERGE else word for word in mode]
    words, environ = _program(schedule, root, ["run", *mode])
    return words, {VARIABLE: said.to_json(), **environ}


def _program(schedule: Schedule, root: Path, words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """`trainyard reprovision` of a checkout with its arguments, and the environment that it needs."""
    python = schedule.folder / "environment" / "bin" / "python"
    inventories = ["-i", str(root / schedule.inventory), "-i", str(schedule.overlay)]
    argv = [str(python), "-s", "-P", "-c", _RUN, *inventories, "reprovision", *words]
    environ = {"PATH": f"{python.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}", "PYTHONPATH": str(root / "src")}
    return argv, environ


def timer_is_young(delay: str, clock: Clock = CLOCK, show: Callable[[], str] | None = None) -> bool:
    """Whether the timer was started so short a time ago that the run which it starts is one that was missed.

    :param show: returns when the timer was started, in microseconds of the monotonic clock, as systemctl says it.
    """
    argv = ["systemctl", "show", TIMER, "--property=ActiveEnterTimestampMonotonic", "--value"]
    text = (show or (lambda: run(argv, timeout=20).stdout))().strip()
    return text.isdigit() and int(text) > 0 and clock.monotonic() - int(text) / 1e6 < seconds(delay) + MISSED_AFTER
