"""The locks of a run: the machine's lock for a report, and also the cluster's lease for a converge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..site_lock import keeper, machine
from ..site_lock.holder import Holder, start_of
from .settings import Site

VERB = "reprovision"
"""The verb of a run as other processes see it."""


@dataclass(frozen=True)
class Locks:
    """The locks that a run holds.

    :param holder: the run as other processes see it; `leased` is whether it holds the cluster's lease.
    :param lost: returns why the locks are no longer held, as a sentence; empty while they are.
    """

    holder: Holder
    lost: Callable[[], str] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the locks as data for a report."""
        return {"holder": str(self.holder), "leased": self.holder.leased, "notes": list(self.holder.notes)}


@contextmanager
def locked(
    site: Site,
    run_id: str,
    *,
    changes: bool,
    revision: str = "",
    start: Callable[[keeper.Wanted], tuple[Holder, int]] = keeper.start,
    stop: Callable[[int], bool] = keeper.stop,
) -> Iterator[Locks]:
    """Hold the locks of a site while the block runs. Playbooks that receive the run's id take no locks.

    :param run_id: name of the run.
    :param changes: whether the run may change the site, which also requires the lease.
    :param revision: commit of the run.
    :raises Busy: another run holds the site.
    """
    if not changes:
        with machine.acquire(site.site_dir, VERB, run_id, revision=revision) as held:
            yield Locks(held.holder, str)
        return
    # A separate process renews the lease, as a playbook may run for an hour.
    holder, pid = start(keeper.Wanted(site.site_dir, VERB, run_id, os.getpid(), site.kubeconfig, revision))
    begun = start_of(pid)

    def lost() -> str:
        now = machine.holder(site.site_dir)
        if now is None or now.run_id != run_id or not begun or start_of(pid) != begun:
            return "The process that keeps the locks of this run has ended."
        return now.lost

    try:
        yield Locks(holder, lost)
    finally:
        stop(pid)
