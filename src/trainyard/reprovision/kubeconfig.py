"""Repair the kubeconfig on the controller, which a converge needs to get the lease.

The file is fetched again if it is missing or if other users may read it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import TrainyardError
from ..site_lock import machine
from .found import REFUSED, find
from .held import VERB
from .item import CONTROLLER, REPAIRABLE, Item
from .limits import comes_back
from .masking import Masker
from .runner import ROOT, RUN, Played
from .settings import Site
from .subjects import hidden_subject

PLAYBOOK = "playbooks/_kubeconfig.yml"
SECONDS = 180.0

ITEM = Item(
    CONTROLLER, "control_plane", "kubeconfig | Keep the admin kubeconfig", "copy", hidden_subject("copy"),
    kind=REPAIRABLE,
)  # fmt: skip
"""The item that a report has if the role finds the fault."""

PRIVATE = "there, for its owner alone"


@dataclass(frozen=True)
class Mended:
    """The result of the repair.

    :param items: the repaired items, one at most.
    :param notes: why it was not repaired.
    :param kept: files of the playbook run, as in `Played`.
    """

    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)


NOTHING = Mended()


def wrong(path: str) -> str:
    """Return the fault of the file: it is missing, or other users than its owner have access; empty without a fault."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return "missing"
    return f"mode {mode:04o}" if mode & 0o077 else ""


def mend(
    site: Site,
    run_id: str,
    converges: Sequence[Collection[str]] = (),
    *,
    play: Callable[..., Played],
    masker: Masker,
    root: Path = ROOT,
    seconds: float = SECONDS,
) -> Mended:
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
        return Mended(notes=(f"the kubeconfig was repaired {times} times in a row: something else changes it back",))
    with machine.acquire(site.site_dir, VERB, run_id):
        try:
            played = play(
                PLAYBOOK, inventory=site.inventory, mode=RUN, run_id=run_id, timeout=seconds, masker=masker, root=root
            )
        except TrainyardError as error:
            return Mended(notes=(f"the kubeconfig was not fetched: {error.message}",))
    if left := wrong(site.kubeconfig):
        said = [item.reason or REFUSED for item in find(played.events).items if item.reason]
        why = "; ".join([played.stopped, *said] if played.stopped else said) or f"it is {left}"
        return Mended(notes=(f"the kubeconfig was not fetched: {why}",), kept=played.kept)
    return Mended((replace(ITEM, before=before, after=PRIVATE),), kept=played.kept)
