"""The access of a run to its site: the locks that it holds, and the kubeconfig on the controller.

A report holds the machine's lock. A converge also holds the cluster's lease, and needs the kubeconfig to get the lease.
If the kubeconfig is missing, or if other users may read it, a converge fetches it again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..site.schedule import comes_back
from ..site_lock import keeper, machine_lock
from ..site_lock.holder import Holder, start_of
from .find import REFUSED, find
from .items import CONTROLLER, PRIVATE, REPAIRABLE, Item
from .masking import Masker
from .playbook_runner import ROOT, RUN, Played
from .settings import Site
from .subjects import hidden_subject

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
        with machine_lock.acquire(site.site_dir, VERB, run_id, revision=revision) as held:
            yield Locks(held.holder, str)
        return
    # A separate process renews the lease, as a playbook may run for an hour.
    holder, pid = start(keeper.Wanted(site.site_dir, VERB, run_id, os.getpid(), site.kubeconfig, revision))
    begun = start_of(pid)

    def lost() -> str:
        now = machine_lock.holder(site.site_dir)
        if now is None or now.run_id != run_id or not begun or start_of(pid) != begun:
            return "The process that keeps the locks of this run has ended."
        return now.lost

    try:
        yield Locks(holder, lost)
    finally:
        stop(pid)


PLAYBOOK = "playbooks/_kubeconfig.yml"
SECONDS = 180.0

ITEM = Item(
    CONTROLLER, "control_plane", "kubeconfig | Keep the admin kubeconfig", "copy", hidden_subject("copy"),
    kind=REPAIRABLE,
)  # fmt: skip
"""The item that a report has if the role finds the fault."""


@dataclass(frozen=True)
class Restored:
    """The result of the repair.

    :param items: the repaired items, one at most.
    :param notes: why it was not repaired.
    :param kept: files of the playbook run, as in `Played`.
    """

    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)


NOTHING = Restored()


def wrong(path: str) -> str:
    """Return the fault of the file: it is missing, or other users than its owner have access; empty without a fault."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return "missing"
    return f"mode {mode:04o}" if mode & 0o077 else ""


def restore_kubeconfig(
    site: Site,
    run_id: str,
    converges: Sequence[Collection[str]] = (),
    *,
    play: Callable[..., Played],
    masker: Masker,
    root: Path = ROOT,
    seconds: float = SECONDS,
) -> Restored:
    """Fetch the file again from the control plane, under the machine's lock. Nothing else changes.

    :param converges: the keys that each earlier converge repaired, the newest last.
    :param seconds: limit of the playbook.
    :raises Busy: another run holds the site.
    """
    before = wrong(site.kubeconfig)
    if not before:
        return NOTHING
    if comes_back(ITEM.key, converges, site.settings.max_repeats):
        times = site.settings.max_repeats
        return Restored(notes=(f"the kubeconfig was repaired {times} times in a row: something else changes it back",))
    with machine_lock.acquire(site.site_dir, VERB, run_id):
        try:
            played = play(
                PLAYBOOK, inventory=site.inventory, mode=RUN, run_id=run_id, timeout=seconds, masker=masker, root=root
            )
        except TrainyardError as error:
            return Restored(notes=(f"the kubeconfig was not fetched: {error.message}",))
    if left := wrong(site.kubeconfig):
        said = [item.reason or REFUSED for item in find(played.events).items if item.reason]
        why = "; ".join([played.stopped, *said] if played.stopped else said) or f"it is {left}"
        return Restored(notes=(f"the kubeconfig was not fetched: {why}",), kept=played.kept)
    return Restored((replace(ITEM, before=before, after=PRIVATE),), kept=played.kept)
