"""Debian packages at desired versions, planned from dpkg's state.

Parts: apt's index and simulations; the packages. The plan reads the index only if a package is missing. The first part
checks whether the index matches the current sources, and parses apt's simulations.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.files import digest_of, write
from ..core.plan import MISSING, Change, Plan, Step
from ..core.waiter import wait_until
from .ownership import matches

SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
STAMP = "/var/cache/trainyard/apt_index.sha256"


def source_files() -> list[str]:
    """Return the files from which apt reads its sources, without broken links and folders."""
    return [path for path in matches(SOURCES) if os.path.isfile(path)]


def digest_of_sources() -> str:
    """Return a digest of all current apt sources."""
    texts = {}
    for path in source_files():
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            texts[path] = stream.read()
    return digest_of(texts)


def index_is_current() -> bool:
    """Return whether the index exists and was completely read since the last change of the sources."""
    if not os.path.exists(STAMP) or not glob.glob("/var/lib/apt/lists/*Release"):
        return False
    with open(STAMP, encoding="utf-8") as stream:
        return stream.read() == digest_of_sources()


def removals(simulation: str) -> list[str]:
    """Return the packages that a simulated run of apt-get would remove."""
    words = (line.split() for line in simulation.split("\n") if line.startswith(("Remv ", "Purg ")))
    return [found[1] for found in words if len(found) > 1]


QUERY_TIMEOUT = 60.0
LOCK_TIMEOUT = 180
"""Seconds to wait for another apt: a host that just booted updates its index by itself."""

LOCKED = "Could not get lock"
"""apt's message if another apt is running."""

TORN = "H"
"""Second letter of dpkg's status abbreviation (dpkg-query(1)) for a package whose unpacking was interrupted."""

UNFINISHED = frozenset("UFWt" + TORN)
"""The same letter for all packages in an unfinished state."""

APT = (
    "apt-get",
    "--assume-yes",
    "--no-install-recommends",
    "--allow-change-held-packages",
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
    "--option=Acquire::http::Timeout=20",
    "--option=Acquire::https::Timeout=20",
    f"--option=DPkg::Lock::Timeout={LOCK_TIMEOUT}",
)
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "LC_ALL": "C",
    "APT_LISTCHANGES_FRONTEND": "none",
    # needrestart, which Ubuntu's servers have, would restart services after each installation, containerd among them.
    "NEEDRESTART_SUSPEND": "1",
}


@dataclass(frozen=True)
class Seen:
    """dpkg's record of one package: the letters of its status, and its version."""

    status: str
    version: str


@dataclass
class Packages:
    """The desired packages.

    :param wanted: name -> version pattern (`2.3.4-*`), or an empty string for any version.
    :param hold: hold the desired packages at their versions.
    :param may_remove: names or patterns of packages that an installation may remove, except those that match a pattern
        with a leading `!`. All other removals are refused.
    :param may_downgrade: whether packages may get older versions; otherwise apt refuses that.
    :param frozen_by: path of a file whose existence marks the host as in use, or empty. Then no installed package may
        change its version.
    :param timeout: seconds for one run of apt-get.
    :param planning: check mode, which shows refused changes instead of failing and continues with the rest.
    """

    wanted: Mapping[str, str]
    hold: bool = False
    may_remove: Sequence[str] = ()
    may_downgrade: bool = False
    frozen_by: str = ""
    timeout: float = 600.0
    planning: bool = False

    def plan(self, seen: Mapping[str, Seen], interrupted: bool = False) -> Plan:
        """Plan from dpkg's state.

        :param interrupted: dpkg left a journal behind.
        :raises TrainyardError: a package would change its version on a host in use.
        """
        frozen = self._frozen(seen)
        steps = [Step(f"For an operator: install {name}", lambda: None, [self._version(name, seen)]) for name in frozen]
        broken = self.unfinished(seen)
        if broken or interrupted:
            torn = [name for name in broken if seen[name].status[1] == TORN]
            what = f"Finish the interrupted installation of {', '.join(broken) or 'packages'}"
            unfinished = Change("unfinished packages", ", ".join(broken) or "a journal of dpkg", "installed")
            steps.append(Step(what, partial(self.repair, torn), [unfinished]))
        missing = [name for name in self.wanted if name in broken or not self._is_there(name, seen)]
        missing = [name for name in missing if name not in frozen]
        if missing:
            what = ", ".join(f"{name}={self.wanted[name]}" if self.wanted[name] else name for name in missing)
            versions = [self._version(name, seen) for name in missing]
            steps.append(Step(f"Install {what}", partial(self.install, missing), versions))
        unheld = [
            name for name in self.wanted if self.hold and (name in missing or not seen[name].status.startswith("h"))
        ]
        if unheld:
            hold = lambda: run(["apt-mark", "hold", *unheld], timeout=QUERY_TIMEOUT)  # noqa: E731
            # For a package that is installed, version and hold are a single difference.
            alone = [name for name in unheld if name not in (*missing, *frozen)]
            holds = [Change(f"hold of {name}", "not held", "held") for name in alone]
            steps.append(Step(f"Hold {', '.join(unheld)}", hold, holds))
        return Plan(steps, *self._states(seen, [*missing, *frozen], unheld), by_subject=False)

    def _version(self, name: str, seen: Mapping[str, Seen]) -> Change:
        there = seen[name].version if name in seen else ""
        return Change(f"package {name}", there or MISSING, self.wanted[name] or "any")

    def _is_there(self, name: str, seen: Mapping[str, Seen]) -> bool:
        package = seen.get(name)
        if package is None or package.status[:2] not in ("ii", "hi"):
            return False
        return not self.wanted[name] or fnmatch.fnmatchcase(package.version, self.wanted[name])

    def _frozen(self, seen: Mapping[str, Seen]) -> list[str]:
        """Return the packages that would change their version on a host in use; raise an error except in check mode."""
        moved = [name for name in self.wanted if name in seen and seen[name].status in ("ii", "hi")]
        moved = [name for name in moved if self.frozen_by and not self._is_there(name, seen)]
        if moved and not self.planning:
            moves = "; ".join(f"{name} is {seen[name].version}, but {self.wanted[name]} is required" for name in moved)
            raise TrainyardError(
                f"This host is in use ({self.frozen_by} exists); other versions would be an upgrade: {moves}.",
                remedy="For a node of this inventory, restore the versions in bundle.lock.yml. Run all of site.yml.",
            )
        return moved

    def _states(self, seen: Mapping[str, Seen], missing: list[str], unheld: list[str]) -> tuple[Any, Any]:
        touched = [name for name in self.wanted if name in missing or name in unheld]
        before = {
            name: {"version": seen[name].version, "held": seen[name].status.startswith("h")} if name in seen else None
            for name in touched
        }
        after = {
            name: {
                "version": (self.wanted[name] or "any") if name in missing else seen[name].version,
                "held": self.hold or (name in seen and seen[name].status.startswith("h")),
            }
            for name in touched
        }
        return before, after

    def refresh(self) -> str:
        """Update the index of all sources.

        :returns: empty, or apt's message about sources that do not answer; the others may have the desired versions.
        """

        def update() -> str:
            try:
                # Without this mode apt-get succeeds with an old index if a source does not answer.
                run([*APT, "--option=APT::Update::Error-Mode=any", "update"], timeout=self.timeout, env=ENVIRONMENT)
            except CommandError as error:
                return error.message
            return ""

        failure = wait_until(
            update, lambda text: LOCKED not in text, what="another apt to end", timeout=LOCK_TIMEOUT, interval=3.0
        )
        if not failure:
            write(STAMP, digest_of_sources(), 0o644)
        return failure

    def repair(self, torn: Sequence[str]) -> None:
        """Complete the work of an interrupted dpkg.

        :param torn: half-unpacked packages, which must be unpacked again.
        """
        run(["dpkg", "--configure", "-a"], timeout=self.timeout, env=ENVIRONMENT, ok=(0, 1))
        run([*APT, "--no-remove", "--fix-broken", "install"], timeout=self.timeout, env=ENVIRONMENT)
        if torn:
            run([*APT, "--no-remove", "--reinstall", "install", *torn], timeout=self.timeout, env=ENVIRONMENT)

    def install(self, names: Sequence[str]) -> None:
        """Install packages, after updating the index if it does not match the current sources.

        :raises TrainyardError: a version is not in the index, or the installation would remove other packages.
        """
        fresh = self.look_up(names)
        words = [f"{name}={self.wanted[name]}" if self.wanted[name] else name for name in names]
        apt = [*APT, "--allow-downgrades"] if self.may_downgrade else APT
        removed = removals(run([*apt, "--simulate", "install", *words], timeout=self.timeout, env=ENVIRONMENT).stdout)
        refused = [name for name in removed if not self._may_go(name)]
        if refused:
            raise TrainyardError(
                f"Installing {', '.join(words)} would remove {', '.join(refused)}.",
                remedy="Remove these packages yourself, or choose packages that do not conflict.",
            )
        try:
            run([*apt, "install", *words], timeout=self.timeout, env=ENVIRONMENT)
        except CommandError:
            # The server may no longer have the files that an old index lists.
            if fresh:
                raise
            self.refresh()
            run([*apt, "install", *words], timeout=self.timeout, env=ENVIRONMENT)

    def look_up(self, names: Sequence[str]) -> bool:
        """Refuse packages that no source has. The index is updated if it is old or lacks one of them.

        :returns: whether the index was updated.
        :raises TrainyardError: a version is not in the index.
        """
        if index_is_current() and not self.not_in(available(names), names):
            return False
        failure = self.refresh()
        if lacking := self.not_in(available(names), names):
            raise TrainyardError(
                f"Not in the package index: {'; '.join(lacking)}. {failure}".strip(),
                remedy="Check that the apt sources (base_apt_sources) answer and have the desired versions.",
            )
        return True

    @staticmethod
    def unfinished(seen: Mapping[str, Seen]) -> list[str]:
        """Return the packages, desired or not, whose installation was interrupted or is going on."""
        return sorted(name for name, package in seen.items() if package.status[1:2] in UNFINISHED)

    def missing(self, seen: Mapping[str, Seen]) -> list[str]:
        """Return the desired packages that are not installed, or have another version."""
        return [name for name in self.wanted if not self._is_there(name, seen)]

    def _may_go(self, name: str) -> bool:
        kept = [pattern[1:] for pattern in self.may_remove if pattern.startswith("!")]
        may_go = [pattern for pattern in self.may_remove if not pattern.startswith("!")]
        return _fits(name, may_go) and not _fits(name, kept)

    def not_in(self, known: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
        """Return the desired packages that the index lacks, each with the available versions."""
        lacking = []
        for name in names:
            pattern = self.wanted[name] or "*"
            if not any(fnmatch.fnmatchcase(version, pattern) for version in known.get(name, ())):
                lacking.append(f"{name} {self.wanted[name]} (there: {', '.join(known.get(name, ())) or 'none'})")
        return lacking


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def installed() -> dict[str, Seen]:
    """Return all packages that dpkg knows."""
    shown = run(
        ["dpkg-query", "--show", "--showformat=${Package}\t${db:Status-Abbrev}\t${Version}\n"], timeout=QUERY_TIMEOUT
    )
    rows = (line.split("\t") for line in shown.stdout.splitlines())
    return {name: Seen(status.strip(), version) for name, status, version in rows}


def available(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the versions in the index, by package."""
    versions: dict[str, list[str]] = {}
    for line in run(["apt-cache", "madison", *names], timeout=QUERY_TIMEOUT).stdout.splitlines():
        name, version, *_ = (part.strip() for part in line.split("|"))
        versions.setdefault(name, []).append(version)
    return versions


def dpkg_was_interrupted() -> bool:
    """Return whether dpkg left a journal of unfinished work; apt-get refuses to run until it is cleared."""
    return any(name.isdigit() for name in os.listdir("/var/lib/dpkg/updates"))
