"""The bare repository of a schedule: fetch and verify revisions, and check out one for each run.

On a fault (no answer, no signature, another version of Kubernetes) the run takes the last good revision. Such a run
changes nothing.

Parts: the address; the fetch; the version of Kubernetes; the repository. The address may contain a password. The fetch
does not trust the server: it checks the objects and limits their size. The version of Kubernetes is in the lock file of
a revision. No schedule changes it.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import yaml

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.flock import take
from ..core.waiter import CLOCK, Clock, wait_until
from ..drift.report import ENVIRONMENT, GIT_TIMEOUT, OPTIONS, Revision
from ..drift.stopping import Deadline, OutOfTimeError

# A shell function, because git appends an argument.
_HELPER = """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$SITE_USER" "$SITE_PASSWORD"; }; f"""


def opened(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without name and password, and the environment that gives both to git for this host only.

    All users of a machine may read the arguments of processes, and git passes an address on to another program.
    """
    try:
        parts = urlsplit(url)
        name, password = parts.username or "", parts.password
    except ValueError:
        return url, {}
    if parts.scheme not in ("http", "https") or password is None:
        return url, {}
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host)), {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"credential.{parts.scheme}://{host}.helper",
        "GIT_CONFIG_VALUE_0": _HELPER, "SITE_USER": unquote(name), "SITE_PASSWORD": unquote(password),
    }  # fmt: skip


def without_password(text: str) -> str:
    """Return a text without the user names and passwords of addresses in it."""
    return re.sub(r"(://)[^/@\s]*@", r"\1", text)


FETCH_TIMEOUT = 120.0
FETCH_BYTES = 512 * 2**20
"""Limit of one fetch, 200 times the size of this project's history. The kernel cuts a larger pack (RLIMIT_FSIZE)."""
RESERVE_BYTES = 256 * 2**20
"""Space on the disk that a fetch leaves for the reports and the rest of the machine."""
SMALLEST_BYTES = 2**20

# Each fetch gives one pack, so the limit of a file bounds its size. Loose objects would be bounded one by one.
CHECKS = ("-c", "fetch.fsckObjects=true", "-c", "fetch.unpackLimit=1")


def fetch(git: Callable[..., str], path: Path, url: str) -> None:
    """Fetch branches and tags.

    :param git: `Repository.git`.
    :param path: of the repository.
    :raises TrainyardError: the server does not answer or sends too much, the disk is full, or git refuses an object.
    """
    address, env = opened(url)
    room = room_of(path)
    try:
        git(*CHECKS, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", address,
            "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
            timeout=FETCH_TIMEOUT, env=env, largest=room)  # fmt: skip
    except CommandError as error:
        # Incomplete packs would fill the disk until the next run.
        left = list(path.glob("objects/**/tmp_*"))
        cut = any(each.stat().st_size >= room for each in left)
        for each in left:
            each.unlink(missing_ok=True)
        # The user name in an address may be a token, and git repeats it.
        said = f"it sends more than {room // 2**20} MiB." if cut else without_password(error.message)
        raise TrainyardError(f"Fetching from {without_password(address)} failed: {said}") from error


def room_of(path: Path) -> int:
    """Return the bytes that a fetch may write.

    :raises TrainyardError: the disk is nearly full.
    """
    disk = os.statvfs(path)
    # A pack has an index of up to its own size.
    room = min(FETCH_BYTES, (disk.f_bavail * disk.f_frsize - RESERVE_BYTES) // 2)
    if room < SMALLEST_BYTES:
        raise TrainyardError(
            f"The disk of {path} has less than {(RESERVE_BYTES + 2 * SMALLEST_BYTES) // 2**20} MiB left; nothing was "
            "fetched.",
            remedy="Make room there.",
        )
    return room


def version(lock: str) -> str:
    """Return the version in the text of a lock file.

    :raises ValueError: the text is not a lock file, or has no version.
    """
    try:
        found = yaml.safe_load(lock)["artefacts"]["kubernetes"]["version"]
    # The file is untrusted and may have any shape and depth.
    except (yaml.YAMLError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return str(found)


def change(old: str, new: str) -> str:
    """Return how a new version differs from the old one, as a clause; empty if it is the same."""
    if old == new:
        return ""
    part = "patch" if old.split(".")[:2] == new.split(".")[:2] else "minor"
    return f"requires another {part} version of Kubernetes ({old} -> {new})"


LAST_GOOD = "refs/trainyard/last-good"
REQUIREMENTS = "requirements.txt"
LOCK = "trainyard.lock"
"""File that each process locks while it uses the repository; `controller/bare_repository.py` locks it, too."""

LOCK_TIMEOUT = 180.0
"""Seconds; the lock is held for one fetch and one checkout."""

NO_DEADLINE = Deadline(math.inf)
_COMMIT = re.compile(r"[0-9a-f]{40}")

# A signature names its own kind. Only signatures of SSH keys count.
_SIGNERS = ("-c", "gpg.format=ssh", "-c", "gpg.openpgp.program=/bin/false", "-c", "gpg.x509.program=/bin/false")


@dataclass(frozen=True)
class Wanted:
    """The revision that the installed schedule requests. It is never read from the revision itself.

    :param url: address to fetch from; empty to use the pushed commits.
    :param ref: a branch, a tag, or a full commit.
    :param signers: file of allowed signers, or None.
    :param requirements: git's hash of the package list that the Python environment was made from, or empty.
    """

    url: str
    ref: str
    signers: Path | None = None
    requirements: str = ""


class Repository:
    """A bare repository, and the folder of its worktrees.

    :param path: of the repository.
    :param worktrees: folder with one checkout for each run.
    :param deadline: of the run; the remaining time bounds each step.
    """

    def __init__(self, path: Path, worktrees: Path, clock: Clock = CLOCK, deadline: Deadline = NO_DEADLINE) -> None:
        self.path = path
        self.worktrees = worktrees
        self._clock, self._deadline = clock, deadline

    def git(
        self, *words: str, timeout: float = GIT_TIMEOUT, env: Mapping[str, str] | None = None, largest: int = 0
    ) -> str:
        """Run git and return its output without the last line break.

        :param timeout: limit in seconds.
        :param env: additional environment variables.
        :param largest: bytes of the largest file that git may write; 0 for no limit.
        :raises CommandError: git failed, or took too long.
        :raises OutOfTimeError: the run's time is up.
        """
        argv = ["git", *OPTIONS, f"--git-dir={self.path}", *words]
        given, limit = {**ENVIRONMENT, **(env or {})}, self._deadline.bound(timeout)
        return run(argv, timeout=limit, env=given, outlives=False, largest=largest).stdout.removesuffix("\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the repository for a fetch, checkout or removal. The kernel releases the lock when the process ends."""
        with (self.path / LOCK).open("a", encoding="utf-8") as stream:
            wait_until(
                lambda: take(stream.fileno()), bool, what=f"the lock of {self.path}",
                timeout=self._deadline.bound(LOCK_TIMEOUT), clock=self._clock,
            )  # fmt: skip
            yield

    def clean_unless_used(self) -> list[str]:
        """Call `clean` unless another process holds the lock. Do not wait for the lock."""
        with (self.path / LOCK).open("a", encoding="utf-8") as stream:
            return self.clean() if take(stream.fileno()) else []

    def take(self, wanted: Wanted) -> Revision:
        """Fetch, verify and remember the requested revision. If this fails, return the last good revision.

        :raises TrainyardError: this failed, and there is no last good revision.
        """
        good = self._ref(LAST_GOOD)
        answered = not wanted.url
        try:
            if wanted.url:
                fetch(self.git, self.path, wanted.url)
                answered = True
            commit, signed = self._verified(wanted, good)
            self._fits(commit, good, wanted)
        except OutOfTimeError:
            # The revision may be good, and there is no time for another one.
            raise
        except TrainyardError as error:
            if not good:
                raise
            note = f"{error.message} The last good revision {good[:12]} was taken, and nothing may be changed."
            # A missing answer may come next time. A refused revision stays refused.
            refused = error.message if answered else ""
            return Revision(good, wanted.ref, None, note, may_converge=False, refused=refused)
        self.git("update-ref", LAST_GOOD, commit)
        return Revision(commit, wanted.ref, signed)

    def _verified(self, wanted: Wanted, good: str) -> tuple[str, bool | None]:
        """Return the commit of the requested name, and whether it is signed; None if signatures are not required.

        :raises TrainyardError: the name does not exist, or a required signature is missing.
        """
        ref = wanted.ref
        if _COMMIT.fullmatch(ref):
            if not self._ref(f"{ref}^{{commit}}"):
                raise TrainyardError(f"The commit {ref} is not in the repository.")
            # The hash itself identifies the content.
            return ref, self._signed(wanted.signers, "verify-commit", ref) if wanted.signers else None
        if tag := self._ref(f"refs/tags/{ref}"):
            if wanted.signers and not self._signed(wanted.signers, "verify-tag", tag):
                raise TrainyardError(f"The tag {ref} is not signed by anyone in reprovision_allowed_signers.")
            # The signature covers the name in the object. A ref may point to the object of another, older tag.
            if wanted.signers and f"tag {ref}" not in self.git("cat-file", "tag", tag).split("\n\n")[0].splitlines():
                raise TrainyardError(f"The tag {ref} points to an object that was signed as another tag.")
            return self.git("rev-parse", "--verify", f"{tag}^{{commit}}"), bool(wanted.signers) or None
        head = self._ref(f"refs/heads/{ref}")
        if not head:
            raise TrainyardError(f"The repository has no branch and no tag {ref}, and {ref} is not a full commit.")
        if wanted.signers:
            # A user who may write to the server but not sign could move the branch back to any earlier commit.
            if good and not self._contains(head, good):
                raise TrainyardError(
                    f"The branch {ref} at {head[:12]} does not contain the last good revision {good[:12]}; if it was "
                    "moved back or rewritten on purpose, run playbooks/reprovision.yml from a checkout of it."
                )
            new = self.git("rev-list", head, f"^{good}").split() if good else [head]
            # Always check the tip: the last good revision may have been pushed by hand.
            for commit in dict.fromkeys([head, *new]):
                if not self._signed(wanted.signers, "verify-commit", commit):
                    raise TrainyardError(
                        f"The commit {commit[:12]} of the branch {ref} is not signed by anyone in "
                        "reprovision_allowed_signers."
                    )
        return head, bool(wanted.signers) or None

    def _contains(self, head: str, commit: str) -> bool:
        with suppress(CommandError):
            self.git("merge-base", "--is-ancestor", commit, head)
            return True
        return False

    def _signed(self, signers: Path, verb: str, name: str) -> bool:
        try:
            self.git(*_SIGNERS, "-c", f"gpg.ssh.allowedSignersFile={signers}", verb, name)
        except CommandError:
            return False
        return True

    def _fits(self, commit: str, good: str, wanted: Wanted) -> None:
        """Check that a schedule may use the revision.

        :raises TrainyardError: the revision needs another version of Kubernetes, or other Python packages.
        """
        asked = self._kubernetes(commit)
        if good and (other := change(self._kubernetes(good), asked)):
            raise TrainyardError(f"The revision {commit[:12]} {other}; the upgrade verb is not built yet.")
        if wanted.requirements and self.git("rev-parse", f"{commit}:{REQUIREMENTS}") != wanted.requirements:
            raise TrainyardError(
                f"The revision {commit[:12]} needs other Python packages; playbooks/reprovision.yml installs them."
            )

    def _kubernetes(self, commit: str) -> str:
        try:
            return version(self.git("show", f"{commit}:bundle.lock.yml"))
        except ValueError as error:
            raise TrainyardError(
                f"The lock file of the revision {commit[:12]} names no version of Kubernetes."
            ) from error

    def _ref(self, name: str) -> str:
        """Return the object of a name, or nothing."""
        with suppress(CommandError):
            return self.git("rev-parse", "--verify", "--quiet", name)
        return ""

    def check_out(self, commit: str, name: str) -> Path:
        """Create a worktree for a run. It stays while this process lives, even if the process executes another program.

        Call this with the lock held, like `clean`.

        :param commit: to check out.
        :param name: unique name of the run.
        """
        path = self.worktrees / name
        descriptor = os.open(self.worktrees / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        take(descriptor, wait=True)
        os.set_inheritable(descriptor, True)
        self.git("worktree", "add", "--quiet", "--detach", "--force", str(path), commit)
        return path

    def clean(self) -> list[str]:
        """Remove the worktrees of runs that ended, including killed ones, and return their names.

        Also remove the lock files of killed git processes. Otherwise a stale lock of a ref or an index would block
        all later runs.
        """
        removed = []
        for left in (*self.path.rglob("*.lock"), *self.path.glob("objects/**/tmp_*")):
            if left != self.path / LOCK and left.is_file():
                left.unlink(missing_ok=True)
        for lock in sorted(self.worktrees.glob("*.lock")):
            with lock.open("a", encoding="utf-8") as stream:
                if not take(stream.fileno()):
                    continue
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()
            removed.append(lock.stem)
        self.git("worktree", "prune")
        return removed
