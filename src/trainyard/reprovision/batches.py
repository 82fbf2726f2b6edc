"""What a converge would repair, where, and in which order; or why it may not. Nothing here is carried out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import limits
from .found import LOOKING
from .item import CLUSTER, CONTROLLER, PERSON, REPAIRED, RESTART, Item
from .settings import Settings

OWN = (CLUSTER, CONTROLLER)
"""What is on no host of the site, and is repaired after the hosts."""

FIRST = ("bundle", "lab", "efs")
"""Roles of the controller that every run of site.yml goes through, also one for a single host."""


WAITS = "waits: a training runs on it, and a restart would hurt that"
ALONE = "left: the run was asked for some hosts alone"


@dataclass(frozen=True)
class Plan:
    """The order of a converge.

    :param items: all items; those that come back again and again are left to a person by now.
    :param canary: the host that is repaired first and alone; empty where no host is.
    :param batches: the hosts after it, those of a batch at the same time.
    :param own: whether objects of the cluster, or files of the controller, are repaired after that.
    :param held: host -> why it is left as it is.
    :param refused: why nothing at all is changed; empty where something may be.
    :param repeats: keys of the items that come back again and again.
    """

    items: tuple[Item, ...]
    canary: str = ""
    batches: tuple[tuple[str, ...], ...] = ()
    own: bool = False
    held: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    repeats: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to be done, so that no second run is needed."""
        return not (self.canary or self.own)


def plan(
    items: Sequence[Item],
    hosts: Sequence[str],
    workers: Collection[str],
    settings: Settings,
    *,
    unreachable: Collection[str] = (),
    training: Collection[str] = (),
    converges: Sequence[Collection[str]] = (),
    approved: bool = False,
    some: bool = False,
) -> Plan:
    """Decide what is repaired.

    :param items: what the report of this run has found.
    :param hosts: all of the site, in its order; `workers` are those that are no control plane.
    :param training: hosts that hold a pod of a running training.
    :param converges: the keys that each converge before has repaired, the newest last.
    :param approved: whether a person has let exactly this drift pass the limits.
    :param some: whether the run was asked for some hosts, so that it repairs nothing else.
    """
    judged = tuple(_judged(item, converges, settings.max_repeats) for item in items)
    repeats = tuple(new.key for new, old in zip(judged, items, strict=True) if new is not old)
    places = [name for name in (*hosts, *OWN) if any(item.place == name for item in judged)]
    held = {name: why for name in places if (why := _first(judged) or _held(name, judged, training))}
    held |= {name: ALONE for name in OWN if some and name in places and name not in held}
    wanted = [item for item in judged if item.kind in REPAIRED]
    drifted = {item.place for item in wanted} - set(OWN)
    refused = limits.too_many_missing(
        hosts=len(hosts), unreachable=unreachable, max_unreachable=settings.max_unreachable
    ) or limits.too_much(
        hosts=len(hosts),
        drifted=drifted,
        items=len(wanted),
        max_hosts=settings.max_hosts,
        max_items=settings.max_items,
    )
    if refused and not approved and wanted:
        return Plan(judged, held=held, refused=refused, repeats=repeats)
    ready = [name for name in places if name not in held and name not in OWN]
    own = [name for name in OWN if any(item.place == name and item.kind in REPAIRED for item in judged)]
    canary = _canary(ready, workers, training, settings.canary)
    rest = [name for name in ready if name != canary]
    restarted = {item.place for item in judged if item.kind == RESTART}
    size = limits.share(settings.batch, len(ready)) if ready else 1
    batches = _batches(rest, restarted, size)
    # They are changed by the same plays: one that may not be repaired holds back the others.
    both = bool(own) and not any(name in held for name in OWN)
    return Plan(judged, canary, batches, both, held, repeats=repeats)


def _judged(item: Item, converges: Sequence[Collection[str]], repeats: int) -> Item:
    if item.kind in REPAIRED and limits.comes_back(item.key, converges, repeats):
        return replace(item, kind=PERSON, reason=f"repaired {repeats} times in a row: somebody else writes there")
    return item


def _first(items: Sequence[Item]) -> str:
    """Why nothing can be repaired without changing what is left to a person."""
    for item in items:
        first = item.role in FIRST or item.module == "code_image"
        if item.place == CONTROLLER and first and item.kind not in REPAIRED:
            why = f", because {item.reason}" if item.reason else ""
            return f"held back: every run begins with {item.subject}, which is for a person{why}"
    return ""


def _held(host: str, items: Sequence[Item], training: Collection[str]) -> str:
    """Why a host is left as it is; it is repaired as a whole or not at all."""
    for item in items:
        # No play changes what was only looked for in the cluster, so it keeps none from being run.
        if item.place == host and item.kind not in REPAIRED and item.module != LOOKING:
            return f"held back: {item.subject} is for a person" + (f", because {item.reason}" if item.reason else "")
    if host in training and any(item.place == host and item.kind == RESTART for item in items):
        return WAITS
    return ""


def _canary(ready: Sequence[str], workers: Collection[str], training: Collection[str], wanted: str) -> str:
    """The host of `reprovision_canary` where it has drifted, else a worker without a training, else the first."""
    if wanted in ready:
        return wanted
    calm = [name for name in ready if name in workers and name not in training]
    return next(iter([*calm, *ready]), "")


def _batches(hosts: Sequence[str], restarted: Collection[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Hosts without a restart `size` at a time, then the others one by one."""
    calm = [name for name in hosts if name not in restarted]
    together = [tuple(calm[first : first + size]) for first in range(0, len(calm), size)]
    return (*together, *((name,) for name in hosts if name in restarted))
