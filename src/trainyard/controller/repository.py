"""The bare repository of a schedule, and what the checkout of whoever sets it up puts into it."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core import places
from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import Plan, Step
from ..core.waiter import wait_until

LAST_GOOD = "refs/trainyard/last-good"
"""The revision that was used last, or set up by hand; src/trainyard/reprovision/repository.py goes back to it."""

LOCK = "trainyard.lock"
"""A start of the schedule holds it while it fetches and checks out, and removes then what killed gits have left."""

TIMEOUT = 120.0
LOCK_TIMEOUT = 180.0
_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "HOME": "/"}


@dataclass(frozen=True)
class Pushed:
    """A revision that was sent to the host.

    :param path: the repository, which its user alone reads.
    :param checkout: folder of the files of that revision, from which the schedule is started.
    :param ref: in full ("refs/heads/main").
    :param commit: what it leads to.
    :param bundle: file with the commits, as `git bundle` makes it; None where only the plan is asked for.
    :param user: owner of all of it; empty for whoever runs this.
    """

    path: Path
    checkout: Path
    ref: str
    commit: str
    bundle: Path | None = None
    user: str = ""


def make_plan(pushed: Pushed) -> Plan:
    """Plan to bring repository and checkout to a revision."""
    seen = observe(pushed)
    wanted = {"ref": pushed.ref, "commit": pushed.commit, "checkout": pushed.commit, "good": pushed.commit}
    if seen == wanted:
        return Plan((), seen, seen)
    steps = []
    if not (pushed.path / "HEAD").is_file():
        steps.append(Step(f"Make the repository {pushed.path}", lambda: _make(pushed)))
    if seen["commit"] != pushed.commit:
        was = f" (was {seen['commit'][:12]})" if seen["commit"] else ""
        steps.append(Step(f"Push {pushed.commit[:12]} to {pushed.ref}{was}", lambda: _push(pushed)))
    if seen["checkout"] != pushed.commit:
        steps.append(Step(f"Check {pushed.commit[:12]} out to {pushed.checkout}", lambda: _check_out(pushed)))
    if seen["good"] != pushed.commit:
        # Whoever sets the schedule up vouches for this revision, whatever a run has taken since.
        was = f" (was {seen['good'][:12]})" if seen["good"] else ""
        steps.append(Step(f"Make {pushed.commit[:12]} the last good revision{was}", lambda: _vouch(pushed)))
    return Plan(steps, seen, wanted)


def observe(pushed: Pushed) -> dict[str, str]:
    """Where the ref leads, of which commit the checkout is, and which one was good last; empty where there is none."""
    there = (pushed.path / "HEAD").is_file()
    commit = _read(pushed, "rev-parse", "--verify", "--quiet", f"{pushed.ref}^{{commit}}") if there else ""
    checkout = (
        _read(pushed, "-C", str(pushed.checkout), "rev-parse", "HEAD") if (pushed.checkout / ".git").is_file() else ""
    )
    # A changed file there would be carried out, whatever the commit says.
    if checkout and _read(pushed, "-C", str(pushed.checkout), "status", "--porcelain"):
        checkout = "changed"
    good = _read(pushed, "rev-parse", "--verify", "--quiet", LAST_GOOD) if there else ""
    return {"ref": pushed.ref, "commit": commit, "checkout": checkout, "good": good}


def _make(pushed: Pushed) -> None:
    _run(pushed, "init", "--quiet", "--bare", str(pushed.path))


def _push(pushed: Pushed) -> None:
    if pushed.bundle is None or not pushed.bundle.is_file():
        raise TrainyardError(f"The commits of {pushed.commit} were not sent to this host.")
    # As a file of the repository's user, wherever the bundle lies and whoever owns it.
    with tempfile.TemporaryDirectory(prefix="trainyard-push-") as work:
        copy = Path(work) / "bundle"
        shutil.copyfile(pushed.bundle, copy)
        if pushed.user:
            # The folder stays root's, so that its user cannot put a link into it.
            Path(work).chmod(0o711)
            copy.chmod(0o400)
            shutil.chown(copy, user=pushed.user)
        git = ["--git-dir", str(pushed.path)]
        # A tag is sent as what it is, with its signature; of anything else the checkout's HEAD.
        source = pushed.ref if pushed.ref.startswith("refs/tags/") else "HEAD"
        with _locked(pushed):
            _run(pushed, *git, "fetch", "--quiet", "--no-write-fetch-head", str(copy), f"+{source}:{pushed.ref}")
    found = _read(pushed, "rev-parse", "--verify", "--quiet", f"{pushed.ref}^{{commit}}")
    if found != pushed.commit:
        raise TrainyardError(f"{pushed.ref} leads to {found or 'nothing'} after the push, and not to {pushed.commit}.")


def _check_out(pushed: Pushed) -> None:
    git = ["--git-dir", str(pushed.path)]
    with _locked(pushed):
        if pushed.checkout.exists():
            # As the user, whose folder it is in: a link there leads to nothing that the user could not remove.
            run([*_as_user(pushed), "rm", "-rf", "--", str(pushed.checkout)], timeout=TIMEOUT)
            _run(pushed, *git, "worktree", "prune")
        _run(pushed, *git, "worktree", "add", "--quiet", "--detach", "--force", str(pushed.checkout), pushed.commit)


def _vouch(pushed: Pushed) -> None:
    with _locked(pushed):
        _run(pushed, "--git-dir", str(pushed.path), "update-ref", LAST_GOOD, pushed.commit)


@contextmanager
def _locked(pushed: Pushed) -> Iterator[None]:
    """The lock of whoever works in the repository.

    :raises TrainyardError: its user has put another file in its place.
    :raises WaitError: a start of the schedule has it for longer than a fetch may take.
    """
    with places.at(str(pushed.path / LOCK)) as (folder, name):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        if pushed.user:
            # Another name of the same file could be one of root's.
            if os.fstat(descriptor).st_nlink != 1:
                raise TrainyardError(f"{pushed.path / LOCK} has a second name.", remedy="Remove it.")
            os.fchown(descriptor, pwd.getpwnam(pushed.user).pw_uid, -1)
        wait_until(lambda: _try_lock(descriptor), bool, what=f"the lock of {pushed.path}", timeout=LOCK_TIMEOUT)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(pushed: Pushed, *words: str) -> str:
    place = () if words[0] == "-C" else ("--git-dir", str(pushed.path))
    try:
        return _run(pushed, *place, *words)
    except CommandError:
        return ""


def _run(pushed: Pushed, *words: str) -> str:
    argv = [*_as_user(pushed), "git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *words]
    return run(argv, timeout=TIMEOUT, env=_ENVIRONMENT).stdout.strip()


def _as_user(pushed: Pushed) -> Sequence[str]:
    return ["runuser", "-u", pushed.user, "--"] if pushed.user else []
