"""The bare repository of a schedule, and the push from an operator's checkout into it."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core import safe_paths
from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.flock import take
from ..core.plan import Plan, Step
from ..core.waiter import wait_until

LAST_GOOD = "refs/trainyard/last-good"
"""The revision that was used or pushed last. src/trainyard/schedule/repository.py falls back to it."""

LOCK = "trainyard.lock"
"""Lock of a start of the schedule while it fetches, checks out, and removes the leftovers of killed git processes."""

TIMEOUT = 120.0
LOCK_TIMEOUT = 180.0
_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "HOME": "/"}


@dataclass(frozen=True)
class Pushed:
    """A revision that was sent to the host.

    :param path: the repository, which only its user may read.
    :param checkout: folder with the files of that revision, from which the schedule starts.
    :param ref: full name, such as "refs/heads/main".
    :param commit: commit of the ref.
    :param bundle: file of `git bundle` with the commits; None to make only the plan.
    :param user: owner of all files; empty for the current user.
    """

    path: Path
    checkout: Path
    ref: str
    commit: str
    bundle: Path | None = None
    user: str = ""


def make_plan(pushed: Pushed) -> Plan:
    """Return the plan to update repository and checkout to a revision."""
    seen = observe(pushed)
    wanted = {"ref": pushed.ref, "commit": pushed.commit, "checkout": pushed.commit, "good": pushed.commit}
    if seen == wanted:
        return Plan((), seen, seen)
    steps = []
    if not (pushed.path / "HEAD").is_file():
        steps.append(Step(f"Create the repository {pushed.path}", lambda: _make(pushed)))
    if seen["commit"] != pushed.commit:
        was = f" (was {seen['commit'][:12]})" if seen["commit"] else ""
        steps.append(Step(f"Push {pushed.commit[:12]} to {pushed.ref}{was}", lambda: _push(pushed)))
    if seen["checkout"] != pushed.commit:
        steps.append(Step(f"Check {pushed.commit[:12]} out to {pushed.checkout}", lambda: _check_out(pushed)))
    if seen["good"] != pushed.commit:
        # A push by an operator also approves the revision, in place of one that a run has used.
        was = f" (was {seen['good'][:12]})" if seen["good"] else ""
        steps.append(Step(f"Make {pushed.commit[:12]} the last good revision{was}", lambda: _vouch(pushed)))
    return Plan(steps, seen, wanted)


def observe(pushed: Pushed) -> dict[str, str]:
    """Return the commits of the ref, of the checkout and of the last good revision; empty if missing."""
    there = (pushed.path / "HEAD").is_file()
    commit = _read(pushed, "rev-parse", "--verify", "--quiet", f"{pushed.ref}^{{commit}}") if there else ""
    checkout = (
        _read(pushed, "-C", str(pushed.checkout), "rev-parse", "HEAD") if (pushed.checkout / ".git").is_file() else ""
    )
    # A changed file in the checkout would be executed in spite of the right commit.
    if checkout and _read(pushed, "-C", str(pushed.checkout), "status", "--porcelain"):
        checkout = "changed"
    good = _read(pushed, "rev-parse", "--verify", "--quiet", LAST_GOOD) if there else ""
    return {"ref": pushed.ref, "commit": commit, "checkout": checkout, "good": good}


def _make(pushed: Pushed) -> None:
    _run(pushed, "init", "--quiet", "--bare", str(pushed.path))


def _push(pushed: Pushed) -> None:
    if pushed.bundle is None or not pushed.bundle.is_file():
        raise TrainyardError(f"The commits of {pushed.commit} were not sent to this host.")
    # Copy the bundle to a file of the repository's user, who may not be able to read the original.
    with tempfile.TemporaryDirectory(prefix="trainyard-push-") as work:
        copy = Path(work) / "bundle"
        shutil.copyfile(pushed.bundle, copy)
        if pushed.user:
            # The folder still belongs to root, so the user cannot put a link into it.
            Path(work).chmod(0o711)
            copy.chmod(0o400)
            shutil.chown(copy, user=pushed.user)
        git = ["--git-dir", str(pushed.path)]
        # The bundle has a tag under its own name, with its signature. For another ref it has the checkout's HEAD.
        source = pushed.ref if pushed.ref.startswith("refs/tags/") else "HEAD"
        with _locked(pushed):
            _run(pushed, *git, "fetch", "--quiet", "--no-write-fetch-head", str(copy), f"+{source}:{pushed.ref}")
    found = _read(pushed, "rev-parse", "--verify", "--quiet", f"{pushed.ref}^{{commit}}")
    if found != pushed.commit:
        raise TrainyardError(f"{pushed.ref} is at {found or 'no commit'} after the push, not at {pushed.commit}.")


def _check_out(pushed: Pushed) -> None:
    git = ["--git-dir", str(pushed.path)]
    with _locked(pushed):
        if pushed.checkout.exists():
            # As the user who owns the folder: through a link, only files that the user may remove can be removed.
            run([*_as_user(pushed), "rm", "-rf", "--", str(pushed.checkout)], timeout=TIMEOUT)
            _run(pushed, *git, "worktree", "prune")
        _run(pushed, *git, "worktree", "add", "--quiet", "--detach", "--force", str(pushed.checkout), pushed.commit)


def _vouch(pushed: Pushed) -> None:
    with _locked(pushed):
        _run(pushed, "--git-dir", str(pushed.path), "update-ref", LAST_GOOD, pushed.commit)


@contextmanager
def _locked(pushed: Pushed) -> Iterator[None]:
    """Hold the lock of the repository while the block runs.

    :raises TrainyardError: its user has put another file in its place.
    :raises WaitError: a start of the schedule holds it for longer than a fetch may take.
    """
    with safe_paths.at(str(pushed.path / LOCK)) as (folder, name):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        if pushed.user:
            # A hard link could be a file of root.
            if os.fstat(descriptor).st_nlink != 1:
                raise TrainyardError(f"{pushed.path / LOCK} has a second hard link.", remedy="Remove it.")
            os.fchown(descriptor, pwd.getpwnam(pushed.user).pw_uid, -1)
        wait_until(lambda: take(descriptor), bool, what=f"the lock of {pushed.path}", timeout=LOCK_TIMEOUT)
        yield
    finally:
        os.close(descriptor)


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
