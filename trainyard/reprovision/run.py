"""One run: looked at under the lock, closed whatever happens, and shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.trainyard.core.clock import CLOCK, Clock
from ansible.module_utils.trainyard.core.errors import TrainyardError

from . import pages, retention
from .found import Found, find
from .history import aged
from .item import CLUSTER, CONTROLLER, Item
from .masking import Masker
from .report import COMPLETE, EXIT_UNKNOWN, begun, finished
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
    """What a check run has found: its items with their ages, and what was kept of it."""

    found: Found
    items: list[Item]
    stopped: str
    kept: Mapping[str, bytes]


class Session:
    """One run at work in the state directory, which its caller holds locked.

    :param mode: `report` or `converge`; what was asked for may be another.
    :param root: the checkout that is used.
    :param play: runs a playbook (tests put their own in).
    """

    def __init__(
        self,
        site: Site,
        store: Store,
        *,
        mode: str = "report",
        asked: str = "report",
        revision: Mapping[str, Any] | None = None,
        hosts: Sequence[str] = (),
        root: Path = ROOT,
        clock: Clock = CLOCK,
        play: Play = play,
    ) -> None:
        self.site, self.store, self.clock, self.root = site, store, clock, root
        self.masker = Masker({*site.secrets, *credentials(os.environ)})
        self._play, self._hosts = play, tuple(hosts)
        refuse_unknown(hosts, site)
        self.closed = store.close_interrupted(clock.time())
        self.report = begun(mode, asked, clock.time(), revision)
        self.report["notes"] = [f"the run {name} was interrupted" for name in self.closed]
        self.report["id"] = store.begin(clock.time(), self.report)

    @property
    def name(self) -> str:
        return str(self.report["id"])

    @property
    def wanted(self) -> tuple[str, ...]:
        """Hosts that this run looks at."""
        return self._hosts or self.site.hosts

    def look(self) -> Looked:
        """Run the site in check mode; history is kept, so that ages go on."""
        played = self._play(
            PLAYBOOK,
            inventory=self.site.inventory,
            mode=CHECK,
            site_hosts=self._hosts,
            run_id=self.name,
            timeout=self.site.settings.timeout,
            masker=self.masker,
            root=self.root,
        )
        found = find(played.events)
        items, history = aged(found.items, self.store.history(), self.clock.time(), self._unseen(found, played.stopped))
        self.store.keep_history(history)
        return Looked(found, items, played.stopped, played.kept)

    def close(self, report: Mapping[str, Any], kept: Mapping[str, bytes]) -> int:
        """Write the report and its pages, prune, and return the exit status."""
        folder = f"runs/{self.name}"
        self.report = {**report}
        for name, data in kept.items():
            self.store.write(f"{folder}/{name}", data)
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
        return self.close({**report, "exit_status": EXIT_UNKNOWN, "headline": f"cannot tell: {told}"}, {})

    def _unseen(self, found: Found, stopped: str) -> set[str]:
        """Whose items keep their ages, because this run says nothing about them."""
        unseen = {*(set(self.site.hosts) - set(found.seen)), *found.refused, *found.unreached}
        # A run that was cut short, or that left hosts out, has not looked at everything of these two.
        partly = stopped or found.blind or not found.ended or found.verdict is None or self._hosts
        return unseen | ({CLUSTER, CONTROLLER} if partly else set())


def report(session: Session) -> int:
    """Look, and say what differs; nothing of the site is changed.

    :returns: the exit status.
    """
    try:
        looked = session.look()
    except TrainyardError as error:
        return session.give_up(str(error))
    document = finished(
        session.report, looked.found, looked.items, session.wanted, session.clock.time(), stopped=looked.stopped
    )
    return session.close(document, looked.kept)


MODES: dict[str, Callable[[Session], int]] = {"report": report}
"""What can be done with a session."""


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
