"""One run: looked at under the lock, closed whatever happens, and shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from . import pages, retention
from .deadline import Deadline, deadline
from .found import Found, find
from .held import Locks
from .history import History, aged, known
from .item import CLUSTER, CONTROLLER, Item
from .kubeconfig import NOTHING, Mended
from .masking import Masker
from .report import COMPLETE, EXIT_UNKNOWN, begun, finished
from .revision import Revision
from .runner import CHECK, ROOT, Played, play
from .settings import Site
from .store import Store

PLAYBOOK = "site.yml"
LARGEST_SECRET = 65536
"""Bytes of a file with a secret."""

CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""Of the environment: where systemd puts the credentials of a service."""

Play = Callable[..., Played]


@dataclass(frozen=True)
class Looked:
    """What a check run has found: its items with their ages, and why it did not come to its end."""

    found: Found
    items: list[Item]
    stopped: str


class Session:
    """One run at work in the state directory, which its caller holds locked.

    :param name: of `Store.new_name`, where the locks had to know it before.
    :param mode: `report` or `converge`; what was asked for may be another.
    :param held: why nothing may be changed now although it was asked for, as a clause.
    :param locks: what the run holds of the site.
    :param mended: what was repaired before it could have them.
    :param root: the checkout that is used.
    :param play: runs a playbook (tests put their own in).
    :param ends: of the whole run; left out, the settings' time counts from now.
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
        mended: Mended = NOTHING,
        root: Path = ROOT,
        clock: Clock = CLOCK,
        play: Play = play,
        ends: Deadline | None = None,
    ) -> None:
        self.site, self.store, self.clock, self.root = site, store, clock, root
        self.held, self.locks, self.hosts, self.mended = held, locks, tuple(hosts), mended
        self.revision = revision or Revision("", "", None, "the working tree as it is")
        self.masker = Masker({*site.secrets, *credentials(os.environ)})
        self.history: History = {}
        self.before: History = {}
        self.look_seconds = 0.0
        self._play, self.deadline = play, ends or deadline(site.settings.timeout, clock, {})
        self._kept: dict[str, bytes] = dict(mended.kept)
        refuse_unknown(hosts, site)
        self.closed = store.close_interrupted(clock.time())
        said = {each: getattr(self.revision, each) for each in ("commit", "ref", "signed", "note")}
        self.report = begun(mode, asked, clock.time(), said, hosts)
        self.report["notes"] = [*(f"the run {name} was interrupted" for name in self.closed), *mended.notes]
        self.report["lock"] = locks.as_json() if locks else None
        self.report["id"] = store.begin(clock.time(), self.report, name)

    @property
    def name(self) -> str:
        return str(self.report["id"])

    @property
    def wanted(self) -> tuple[str, ...]:
        """Hosts that this run looks at."""
        return self.hosts or self.site.hosts

    def play(
        self, mode: str, hosts: Sequence[str] = (), *, objects: bool = True, unready: Sequence[str] = (),
        playbook: str = PLAYBOOK, limit: float = 0,
    ) -> Played:  # fmt: skip
        """Run a playbook on some hosts, all of them where none is named.

        :param objects: whether the cluster's own objects are looked at or changed as well.
        :param unready: hosts of the site whose nodes it does not wait for.
        :param limit: in seconds; 0 for that of the settings.
        :raises TrainyardError: it cannot be started, or the run's time is up.
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
            # What was compressed in parts is read as one.
            self._kept[name] = self._kept.get(name, b"") + data
        return played

    def look(self) -> Looked:
        """Run the site in check mode; history is kept, so that ages go on."""
        began = self.clock.monotonic()
        played = self.play(CHECK, self.hosts)
        # Kept for the look that proves a repair.
        self.look_seconds = self.clock.monotonic() - began
        found = find(played.events)
        items = [*found.items, *self._about_the_revision()]
        self.before = self.store.history()
        told, self.history = aged(items, self.before, self.clock.time(), self._unseen(found, played.stopped))
        self.store.keep_history(self.history)
        return Looked(found, told, played.stopped)

    def look_again(self, hosts: Sequence[str] = ()) -> Looked:
        """The same once more, on some hosts without the cluster's own objects, or on all that this run looks at."""
        played = self.play(CHECK, hosts or self.hosts, objects=not hosts)
        found = find(played.events)
        items = [*found.items, *([] if hosts else self._about_the_revision())]
        return Looked(found, known(items, self.history, self.clock.time()), played.stopped)

    def document(self, looked: Looked, doubt: Sequence[str] = ()) -> dict[str, Any]:
        """The report of a run that has looked and changes nothing.

        :param doubt: what cannot be told besides.
        """
        if not (self.revision.may_converge or self.revision.refused):
            doubt = [*doubt, self.revision.note]
        return finished(
            self.report, looked.found, looked.items, self.wanted, self.clock.time(), stopped=looked.stopped,
            doubt=doubt, held=self.held,
        )  # fmt: skip

    def note(self, **values: Any) -> None:
        """Write down something of a run that is at work, so that it is known although the run is killed."""
        self.report |= values
        self.store.write_json(f"runs/{self.name}/report.json", self.report)

    def close(self, report: Mapping[str, Any]) -> int:
        """Write the report and its pages, prune, and return the exit status."""
        folder = f"runs/{self.name}"
        self.report = {**report}
        for name, data in self._kept.items():
            self.store.write(f"{folder}/{name}", data)
        self._kept = {}
        self.store.write(f"{folder}/report.html", pages.html(report))
        self.store.write(f"{folder}/report.md", pages.markdown(report))
        # Last: whoever sees a complete report finds everything that belongs to it.
        self.store.write_json(f"{folder}/report.json", report)
        settings = self.site.settings
        retention.prune(
            self.store,
            self.clock.time(),
            days=settings.keep_reports_days,
            count=settings.keep_runs,
            megabytes=settings.keep_mb,
        )
        self.store.write("index.html", pages.index(self.store.reports(pages.LISTED)))
        return int(report["exit_status"])

    def give_up(self, why: str) -> int:
        """Close a run that could not be carried out."""
        now = self.clock.time()
        report = {**self.report, "state": COMPLETE, "ended": now, "seconds": round(now - self.report["began"], 1)}
        told = self.masker.text(why)
        return self.close({**report, "exit_status": EXIT_UNKNOWN, "headline": f"cannot tell: {told}"})

    def _about_the_revision(self) -> list[Item]:
        """What a person has to do before the revision that was asked for can be used."""
        if not self.revision.refused:
            return []
        about = f"revision {self.revision.ref}"
        return [Item(CONTROLLER, "reprovision", "Choose the revision", "", about, reason=self.revision.refused)]

    def _unseen(self, found: Found, stopped: str) -> set[str]:
        """Whose items keep their ages, because this run says nothing about them."""
        unseen = {*(set(self.site.hosts) - set(found.seen)), *found.refused, *found.unreached}
        # A run that was cut short, or that left hosts out, has not looked at everything of these two.
        partly = stopped or found.blind or not found.ended or found.verdict is None or self.hosts
        return unseen | ({CLUSTER, CONTROLLER} if partly else set())


def report(session: Session) -> int:
    """Look, and say what differs; nothing of the site is changed.

    :returns: the exit status.
    """
    try:
        looked = session.look()
    except TrainyardError as error:
        return session.give_up(str(error))
    return session.close(session.document(looked))


def refuse_unknown(hosts: Sequence[str], site: Site) -> None:
    """Refuse a site without hosts, and hosts that it does not have: either would make a report that is clean.

    :raises TrainyardError: naming them.
    """
    if not site.hosts:
        raise TrainyardError(
            f"The inventory {', '.join(site.inventory)} names no host of a site.",
            remedy="Look whether Ansible can read it: `ansible-inventory --list -i` says why not.",
        )
    unknown = [host for host in hosts if host not in site.hosts]
    if unknown:
        raise TrainyardError(
            f"The site has no host {', '.join(unknown)}.", remedy=f"It has {', '.join(site.hosts) or 'none'}."
        )


def credentials(environ: Mapping[str, str]) -> set[str]:
    """What the credentials of the service hold, so that it can be masked."""
    found = set()
    folder = environ.get(CREDENTIALS, "")
    for path in sorted(Path(folder).iterdir()) if folder and Path(folder).is_dir() else []:
        if path.is_file() and path.stat().st_size <= LARGEST_SECRET:
            found.add(path.read_text(encoding="utf-8", errors="replace"))
    return found
