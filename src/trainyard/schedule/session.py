"""A whole run: its mode, its locks, the wait after a boot, and the notices after it.

After a power cut all hosts start at the same time. So if this machine booted recently, a run waits before it checks the
hosts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.waiter import CLOCK, Clock
from ..drift import stopping
from ..drift.converge import converge, converges
from ..drift.masking import Masker
from ..drift.playbook_runner import RUN, play
from ..drift.report import Revision, of_the_site
from ..drift.report_run import Play, Session, credentials, report
from ..drift.report_store import Store
from ..drift.settings import Site
from ..drift.site_access import NOTHING, SECONDS, locked, restore_kubeconfig
from ..drift.stopping import deadline
from ..site import schedule
from ..site_lock import keeper
from . import notify

PLAYBOOK = "playbooks/_wait.yml"

YOUNG_SECONDS = 900.0
"""Time after the start of this machine in which an unreachable host may still be starting."""

WAIT_SECONDS = 360.0
"""Limit of the whole playbook; its own wait takes up to 300 s."""


def is_young(clock: Clock = CLOCK, show: Callable[[], str] | None = None) -> bool:
    """Return whether this machine started within `YOUNG_SECONDS`.

    :param show: returns the start in microseconds of the monotonic clock, in the form of systemctl. In a container,
        which shares the clock of its machine, this is the start of the container.
    """
    argv = ["systemctl", "show", "--property=UserspaceTimestampMonotonic", "--value"]
    try:
        said = (show or (lambda: run(argv, timeout=20).stdout))().strip()
    except TrainyardError:
        # Without systemd the start of the machine counts.
        said = ""
    return clock.monotonic() - (int(said) / 1e6 if said.isdigit() else 0.0) < YOUNG_SECONDS


MODES: dict[str, Callable[[Session], int]] = {"report": report, "converge": converge}
"""Mode -> function that performs it."""


def perform(
    site: Site,
    store: Store,
    mode: str,
    revision: Revision,
    *,
    hosts: Sequence[str] = (),
    clock: Clock = CLOCK,
    play: Play = play,
    young: Callable[[], bool] = is_young,
) -> Session:
    """Run once, and return the session with its report.

    :param mode: the requested mode. A converge becomes a report outside its windows, or if the revision forbids it.
    :param hosts: limits the run to these hosts; empty for all.
    :param young: returns whether this machine was started a short time ago.
    :raises Busy: another run holds the site.
    :raises BusyError: another run uses the state directory.
    :raises TrainyardError: the site cannot be checked.
    """
    now, ends = clock.time(), deadline(site.settings.timeout, clock)
    held = why_not(site, store, now) if mode == "converge" else ""
    done = "report" if held or not revision.may_converge else mode
    name = store.new_name(now)
    restored = NOTHING
    with stopping.listening():
        if done == "converge":
            masker = Masker({*site.secrets, *credentials(os.environ)})
            seconds = min(SECONDS, max(ends.left, 1))
            restored = restore_kubeconfig(site, name, converges(store), play=play, masker=masker, seconds=seconds)
        start = partial(keeper.start, seconds=min(keeper.START_SECONDS, max(ends.left, 1)))
        changes = done == "converge"
        with locked(site, name, changes=changes, revision=revision.commit, start=start) as locks, store.locked():
            session = Session(
                site, store, name=name, mode=done, asked=mode, held=held, revision=revision, hosts=hosts, locks=locks,
                restored=restored, clock=clock, play=play, ends=ends,
            )  # fmt: skip
            if young():
                _wait(session)
            MODES[done](session)
            notify.follow(session)
    return session


def why_not(site: Site, store: Store, now: float) -> str:
    """Return why the windows allow no converge now, as a clause; empty if they do.

    :param now: seconds since the epoch.
    """
    parsed = [schedule.parse(each) for each in site.settings.windows]
    done = [each for each in of_the_site(store.reports()) if each["mode"] == "converge" and each["seconds"]]
    took = [float(each["seconds"]) for each in done]
    return schedule.why_not(parsed, datetime.fromtimestamp(now, UTC), took[::-1])


def _wait(session: Session) -> None:
    """Wait for the hosts, up to a limit. The run itself reports hosts that do not answer."""
    try:
        session.play(RUN, session.hosts, playbook=PLAYBOOK, limit=WAIT_SECONDS)
    except TrainyardError as error:
        session.note(notes=[*session.report["notes"], str(error)])
