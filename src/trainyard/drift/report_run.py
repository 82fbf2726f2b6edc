"""One run: check the site under the lock, close the run in any case, and write its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.waiter import CLOCK, Clock
from .find import Found, find
from .items import CLUSTER, CONTROLLER, Item
from .markdown import markdown
from .masking import Masker
from .playbook_runner import CHECK, ROOT, Played, play
from .report import COMPLETE, EXIT_UNKNOWN, Revision, begun, finished
from .report_store import History, Store, aged, known, prune
from .settings import Site
from .site_access import NOTHING, Locks, Restored
from .stopping import Deadline, deadline

PLAYBOOK = "site.yml"
LARGEST_SECRET = 65536
"""Limit of the bytes of a file with a secret."""

CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""Environment variable: the folder in which systemd puts the credentials of a service."""

Play = Callable[..., Played]


@dataclass(frozen=True)
class Looked:
    """The result of a check run: its items with their ages, and why it did not finish."""

    found: Found
    items: list[Item]
    stopped: str


class Session:
    """One run in the state directory. The caller holds the lock of the directory.

    :param name: of `Store.new_name`, if the locks needed it before.
    :param mode: `report` or `converge`; `asked` is the requested mode.
    :param held: why a requested converge may change nothing now, as a clause; else empty.
    :param hosts: limits the run to these hosts; empty for all.
    :param locks: the locks that the run holds.
    :param restored: the repair of the kubeconfig, which the locks need.
    :param root: the checkout that is used.
    :param play: runs a playbook (a test double in tests).
    :param ends: deadline of the whole run; without it, the time limit of the settings counts from now.
    """

    def __init__(
        self,
        site: Site,
        store: Store,
        *,
        name: str = "",
        mode: str = "report",
        asked: str = "report",
        held: str = "",
        revision: Revision | None = None,
        hosts: Sequence[str] = (),
        locks: Locks | None = None,
        restored: Restored = NOTHING,
        root: Path = ROOT,
        clock: Clock = CLOCK,
        play: Play = play,
        ends: Deadline | None = None,
    ) -> None:
        self.site, self.store, self.clock, self.root = site, store, clock, root
        self.held, self.locks, self.hosts, self.restored = held, locks, tuple(hosts), restored
        self.revision = revision or Revision("", "", None, "the working tree as it is")
        self.masker = Masker({*site.secrets, *credentials(os.environ)})
        self.history: History = {}
        self.before: History = {}
        self.look_seconds = 0.0
        self._play, self.deadline = play, ends or deadline(site.settings.timeout, clock, {})
        self._kept: dict[str, bytes] = dict(restored.kept)
        refuse_unknown(hosts, site)
        self.closed = store.close_interrupted(clock.time())
        said = {each: getattr(self.revision, each) for each in ("commit", "ref", "signed", "note")}
        self.report = begun(mode, asked, clock.time(), said, hosts)
        self.report["notes"] = [*(f"the run {name} was interrupted" for name in self.closed), *restored.notes]
        self.report["lock"] = locks.as_json() if locks else None
        self.report["id"] = store.begin(clock.time(), self.report, name)

    @property
    def name(self) -> str:
        return str(self.report["id"])

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the hosts that this run checks."""
        return self.hosts or self.site.hosts

    def play(
        self, mode: str, hosts: Sequence[str] = (), *, objects: bool = True, unready: Sequence[str] = (),
        playbook: str = PLAYBOOK, limit: float = 0,
    ) -> Played:  # fmt: skip
        """Run a playbook.

        :param mode: `check` or `run`.
        :param hosts: limits the playbook to these hosts; empty for all.
        :param objects: whether the playbook also covers the cluster's own objects.
        :param unready: hosts of the site whose nodes the playbook does not wait for.
        :param limit: in seconds; 0 for the limit of the settings.
        :raises TrainyardError: the playbook cannot be started, or the run's time is up.
        """
        about = {"site_unready_hosts": [*unready]} if unready else {}
        played = self._play(
            playbook,
            inventory=self.site.inventory,
            mode=mode,
            site_hosts=tuple(hosts),
            extra=about if objects else {**about, "site_objects": False},
            run_id=self.name,
            timeout=max(self.deadline.bound(limit or self.site.settings.timeout), 1),
            masker=self.masker,
            root=self.root,
        )
        for name, data in played.kept.items():
            # Concatenated gzip parts read as one file.
            self._kept[name] = self._kept.get(name, b"") + data
        return played

    def look(self) -> Looked:
        """Run site.yml in check mode, and update the history of ages."""
        began = self.clock.monotonic()
        played = self.play(CHECK, self.hosts)
        # The estimate for the check run that proves a repair.
        self.look_seconds = self.clock.monotonic() - began
        found = find(played.events)
        items = [*found.items, *self._about_the_revision()]
        self.before = self.store.history()
        aged_items, self.history = aged(items, self.before, self.clock.time(), self._unseen(found, played.stopped))
        self.store.keep_history(self.history)
        return Looked(found, aged_items, played.stopped)

    def look_again(self, hosts: Sequence[str] = ()) -> Looked:
        """Run site.yml in check mode again.

        :param hosts: limits the check to these hosts, without the cluster's own objects; empty for all of this run.
        """
        played = self.play(CHECK, hosts or self.hosts, objects=not hosts)
        found = find(played.events)
        items = [*found.items, *([] if hosts else self._about_the_revision())]
        return Looked(found, known(items, self.history, self.clock.time()), played.stopped)

    def document(self, looked: Looked, doubt: Sequence[str] = ()) -> dict[str, Any]:
        """Return the report of a run in report mode.

        :param doubt: other parts that were not checked, each a sentence.
        """
        if not (self.revision.may_converge or self.revision.refused):
            doubt = [*doubt, self.revision.note]
        return finished(
            self.report, looked.found, looked.items, self.wanted, self.clock.time(), stopped=looked.stopped,
            doubt=doubt, held=self.held,
        )  # fmt: skip

    def note(self, **values: Any) -> None:
        """Add values to the report on disk, so that they survive if the run is killed."""
        self.report |= values
        self.store.write_json(f"runs/{self.name}/report.json", self.report)

    def close(self, report: Mapping[str, Any]) -> int:
        """Write the report and its pages, prune old runs, and return the exit status."""
        folder = f"runs/{self.name}"
        self.report = {**report}
        for name, data in self._kept.items():
            self.store.write(f"{folder}/{name}", data)
        self._kept = {}
        self.store.write(f"{folder}/report.md", markdown(report))
        # Written last, so that all files of a complete report exist.
        self.store.write_json(f"{folder}/report.json", report)
        settings = self.site.settings
        prune(
            self.store,
            self.clock.time(),
            days=settings.keep_reports_days,
            count=settings.keep_runs,
            megabytes=settings.keep_mb,
        )
        return int(report["exit_status"])

    def give_up(self, why: str) -> int:
        """Close a run that failed before its check run ended.

        :param why: the reason, as a clause or sentence.
        """
        now = self.clock.time()
        report = {**self.report, "state": COMPLETE, "ended": now, "seconds": round(now - self.report["began"], 1)}
        reason = self.masker.text(why)
        return self.close({**report, "exit_status": EXIT_UNKNOWN, "headline": f"unknown: {reason}"})

    def _about_the_revision(self) -> list[Item]:
        """Return an item if an operator must correct the requested revision before it can be used."""
        if not self.revision.refused:
            return []
        about = f"revision {self.revision.ref}"
        return [Item(CONTROLLER, "reprovision", "Choose the revision", "", about, reason=self.revision.refused)]

    def _unseen(self, found: Found, stopped: str) -> set[str]:
        """Return the hosts that this run did not check, so that their items keep their ages."""
        unseen = {*(set(self.site.hosts) - set(found.seen)), *found.refused, *found.unreached}
        # A run that was cut short, or that left out hosts, checks these two only in part.
        partly = stopped or found.blind or not found.ended or found.verdict is None or self.hosts
        return unseen | ({CLUSTER, CONTROLLER} if partly else set())


def report(session: Session) -> int:
    """Check the site and report what differs, without changes to the site.

    :returns: the exit status.
    """
    try:
        looked = session.look()
    except TrainyardError as error:
        return session.give_up(str(error))
    return session.close(session.document(looked))


def refuse_unknown(hosts: Sequence[str], site: Site) -> None:
    """Refuse a site without hosts, and unknown hosts. Both would give a clean report.

    :raises TrainyardError: there are no hosts, or some are unknown.
    """
    if not site.hosts:
        raise TrainyardError(
            f"The inventory {', '.join(site.inventory)} names no host of a site.",
            remedy=f"Run `ansible-inventory --list -i {' -i '.join(site.inventory)}`: it must list the site's hosts.",
        )
    unknown = [host for host in hosts if host not in site.hosts]
    if unknown:
        raise TrainyardError(
            f"The site has no host {', '.join(unknown)}.", remedy=f"It has {', '.join(site.hosts) or 'none'}."
        )


def credentials(environ: Mapping[str, str]) -> set[str]:
    """Return the values of the service's credentials, so that they can be masked."""
    found = set()
    folder = environ.get(CREDENTIALS, "")
    for path in sorted(Path(folder).iterdir()) if folder and Path(folder).is_dir() else []:
        if path.is_file() and path.stat().st_size <= LARGEST_SECRET:
            found.add(path.read_text(encoding="utf-8", errors="replace"))
    return found
