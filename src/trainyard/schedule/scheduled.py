"""The entry point of the timer: choose the revision, check it out, and execute its program.

The rules for choosing are installed with the schedule (`schedule.json`). They are not part of any revision.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.flock import take
from ..core.untrusted import clean
from ..core.waiter import CLOCK, Clock
from ..drift.report import VARIABLE, Revision
from ..drift.stopping import VARIABLE as DEADLINE
from ..drift.stopping import Deadline, deadline
from ..project import python_path
from ..site.schedule import seconds
from .repository import Repository, Wanted

CANNOT_TELL, BUSY = 2, 4
"""Exit statuses: no revision is available; another start is running. docs/tasks/reprovisioning.md lists all."""

LOCK = "run.lock"
"""Lock file next to the repository. A start holds it from before its fetch until its program ends."""

TIMER = "trainyard-reprovision.timer"
DEFAULT_TIMEOUT = 3600
"""Seconds; the default of reprovision_timeout."""
UNIT_TIMEOUT = 86_400
"""Seconds for an old schedule.json without a timeout. The unit's own limit ends such a run earlier."""

MISSED_AFTER = 60.0
"""Seconds after the start of the timer, plus its delay, in which a run replaces a missed one."""

BY_HAND = ("approve", "show", "status")
"""Verbs of `trainyard reprovision` that an operator may call on this machine. Only the unit has the credentials for
a run."""

CONVERGE = ("converge", "--mode=converge")
# An unexpected error has the exit status of an unknown state.
_RUN = f"""import runpy, sys, traceback
try:
    runpy.run_module("trainyard", run_name="__main__", alter_sys=True)
except Exception:
    traceback.print_exc()
    sys.exit({CANNOT_TELL})"""


@dataclass(frozen=True)
class Schedule:
    """The schedule that the role has installed.

    :param folder: of repository, worktrees and environment.
    :param inventory: of the site, relative to the checkout.
    :param overlay: additional inventory with the values of this machine.
    :param mode: `report` or `converge`.
    :param delay: of the timer, as for systemd's RandomizedDelaySec.
    :param timeout: seconds from the start of the unit until a run begins no further step.
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
        """Read a schedule.json.

        :raises TrainyardError: the file is missing, or not in the form that the role writes.
        """
        try:
            given: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            signers = Path(given["signers"]) if given["signers"] else None
            wanted = Wanted(given["repository"], given["revision"], signers, given["requirements"])
            folder, overlay = Path(given["folder"]), Path(given["overlay"])
            # Missing if an older playbook has written the file.
            timeout = int(given.get("timeout", UNIT_TIMEOUT))
            return cls(folder, given["inventory"], overlay, given["mode"], given["delay"], wanted, timeout)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TrainyardError(
                f"The schedule {path} cannot be read: {error}.", remedy="Run playbooks/reprovision.yml again."
            ) from error


def main(argv: Sequence[str]) -> int:
    """Execute the program of the chosen revision, or remove the leftovers of ended runs (`--clean`).

    :param argv: path of schedule.json; then `--clean`, or options for `trainyard reprovision run`.
    :returns: the exit status, only if no program was started.
    """
    try:
        schedule = Schedule.read(Path(argv[0]))
        ends = deadline(schedule.timeout, environ={})
        repository = repository_of(schedule, ends)
        if "--clean" in argv:
            # A running start has already done this.
            repository.clean_unless_used()
            return 0
        # First, so that a refused start neither fetches nor checks out, and does not wait.
        other = alone(schedule.folder / "git" / LOCK)
        if other:
            print(f"Error: Another run of the schedule is running: process {other}.", file=sys.stderr)
            return BUSY
        # systemd sets TRIGGER_UNIT if a timer, not an operator, has started the service.
        missed = os.environ.get("TRIGGER_UNIT") == TIMER and timer_is_young(schedule.delay)
        start(schedule, repository, argv[1:], ends, missed=missed)
    except (TrainyardError, OSError) as error:
        print(clean(f"Error: {error}"), file=sys.stderr)
    return CANNOT_TELL


def by_hand(
    path: str, words: Sequence[str], become: Callable[[str, list[str], Mapping[str, str]], object] = os.execve
) -> int:
    """Execute the installed program to show the schedule's reports, or to approve one.

    :param path: of schedule.json.
    :param words: one of BY_HAND with its arguments.
    :returns: the exit status, only if no program was started.
    """
    try:
        if not words or words[0] not in BY_HAND:
            raise TrainyardError(
                "This command accepts approve REPORT, show [REPORT] or status.",
                remedy="Start a run with `systemctl start trainyard-reprovision`.",
            )
        schedule = Schedule.read(Path(path))
        root = schedule.folder / "git" / "installed"
        program, environ = _program(schedule, root, words)
        # The environment belongs to another user. Keep only the name of that user and the size of the terminal.
        kept = {name: os.environ[name] for name in ("SUDO_USER", "TERM", "COLUMNS") if name in os.environ}
        os.chdir(root)
        become(program[0], program, {**kept, "LANG": "C.UTF-8", "HOME": str(schedule.folder / "home"), **environ})
    except (TrainyardError, OSError) as error:
        print(clean(f"Error: {error}"), file=sys.stderr)
    return CANNOT_TELL


def alone(path: Path) -> str:
    """Take the lock of all starts. It is held while this process lives, even if it executes another program.

    :returns: nothing, or the id of the process that holds the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not take(descriptor):
        # The file is empty for a moment after the lock was taken.
        other = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        return other
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    os.set_inheritable(descriptor, True)
    return ""


def repository_of(schedule: Schedule, ends: Deadline) -> Repository:
    """Return the repository of a schedule, with the folder of its worktrees."""
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
    """Choose the revision, check it out, and execute its program.

    :param options: for `trainyard reprovision run`; they replace the schedule's mode.
    :param ends: deadline of the whole run, passed to its program in the environment.
    :param missed: whether this run replaces one that was missed while the machine was off.
    :raises TrainyardError: no revision is available.
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
    """Return the program with its arguments, and the additions to its environment."""
    mode = list(options) or ["--mode", schedule.mode]
    late = missed and not {*CONVERGE}.isdisjoint(mode)
    note = "The scheduled time was missed while the machine was off: this run changes nothing." if late else ""
    said = replace(revision, note=" ".join(filter(None, (revision.note, note))))
    if late or not revision.may_converge:
        mode = [word.replace("converge", "report") if word in CONVERGE else word for word in mode]
    words, environ = _program(schedule, root, ["run", *mode])
    return words, {VARIABLE: said.to_json(), **environ}


def _program(schedule: Schedule, root: Path, words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line of a checkout's `trainyard reprovision`, and the environment that it needs."""
    python = schedule.folder / "environment" / "bin" / "python"
    inventories = ["-i", str(root / schedule.inventory), "-i", str(schedule.overlay)]
    argv = [str(python), "-s", "-P", "-c", _RUN, *inventories, "reprovision", *words]
    environ = {"PATH": f"{python.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}", "PYTHONPATH": python_path(root)}
    return argv, environ


def timer_is_young(delay: str, clock: Clock = CLOCK, show: Callable[[], str] | None = None) -> bool:
    """Return whether the timer was started so recently that its run must replace a missed one.

    :param delay: of the timer, as for systemd's RandomizedDelaySec.
    :param show: returns the start of the timer in microseconds of the monotonic clock, in the form of systemctl.
    """
    argv = ["systemctl", "show", TIMER, "--property=ActiveEnterTimestampMonotonic", "--value"]
    text = (show or (lambda: run(argv, timeout=20).stdout))().strip()
    return text.isdigit() and int(text) > 0 and clock.monotonic() - int(text) / 1e6 < seconds(delay) + MISSED_AFTER
