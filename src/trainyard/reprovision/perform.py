"""A run from its start to what follows it: what it may do, its locks, the wait after a boot, and who hears of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from ..site_lock import keeper
from . import after, boot, stopping, windows
from .deadline import deadline
from .held import locked
from .kubeconfig import NOTHING, SECONDS, mend
from .masking import Masker
from .repair import converge, converges
from .report import of_the_site
from .revision import Revision
from .run import Play, Session, credentials, report
from .runner import RUN, play
from .settings import Site
from .store import Store

MODES: dict[str, Callable[[Session], int]] = {"report": report, "converge": converge}
"""What can be done with a site."""


def perform(
    site: Site,
    store: Store,
    mode: str,
    revision: Revision,
    *,
    hosts: Sequence[str] = (),
    clock: Clock = CLOCK,
    play: Play = play,
    young: Callable[[], bool] = boot.is_young,
) -> Session:
    """Run once; the session, whose report says how it ended.

    :param mode: what is asked for; a converge outside its windows, or with a revision that may not, is a report.
    :param hosts: those that are looked at; all where none is named.
    :param young: whether this machine was started a short time ago.
    :raises Busy: another run holds the site.
    :raises BusyError: another run works in the state directory.
    :raises TrainyardError: the site cannot be looked at.
    """
    now, ends = clock.time(), deadline(site.settings.timeout, clock)
    held = why_not(site, store, now) if mode == "converge" else ""
    done = "report" if held or not revision.may_converge else mode
    name = store.new_name(now)
    mended = NOTHING
    with stopping.listening():
        if done == "converge":
            masker = Masker({*site.secrets, *credentials(os.environ)})
            seconds = min(SECONDS, max(ends.left, 1))
            mended = mend(site, name, converges(store), play=play, masker=masker, seconds=seconds)
        start = partial(keeper.start, seconds=min(keeper.START_SECONDS, max(ends.left, 1)))
        changes = done == "converge"
        with locked(site, name, changes=changes, revision=revision.commit, start=start) as locks, store.locked():
            session = Session(
                site, store, name=name, mode=done, asked=mode, held=held, revision=revision, hosts=hosts, locks=locks,
                mended=mended, clock=clock, play=play, ends=ends,
            )  # fmt: skip
            if young():
                _wait(session)
            MODES[done](session)
            after.follow(session)
    return session


def why_not(site: Site, store: Store, now: float) -> str:
    """Why the windows allow no converge now, as a clause; empty if they do."""
    parsed = [windows.parse(each) for each in site.settings.windows]
    done = [each for each in of_the_site(store.reports()) if each["mode"] == "converge" and each["seconds"]]
    took = [float(each["seconds"]) for each in done]
    return windows.why_not(parsed, datetime.fromtimestamp(now, UTC), took[::-1])


def _wait(session: Session) -> None:
    """Wait for the hosts, bounded; which of them do not answer is for the run to say."""
    try:
        session.play(RUN, session.hosts, playbook=boot.PLAYBOOK, limit=boot.WAIT_SECONDS)
    except TrainyardError as error:
        session.note(notes=[*session.report["notes"], str(error)])
