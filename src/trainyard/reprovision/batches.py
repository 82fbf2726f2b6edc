"""Plan a converge: decide what to repair, where and in which order, or why nothing may be repaired."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import limits
from .found import LOOKING
from .item import CLUSTER, CONTROLLER, PERSON, REPAIRED, RESTART, Item
from .settings import Settings

OWN = (CLUSTER, CONTROLLER)
"""Places that are not hosts of the site. They are repaired after the hosts."""

FIRST = ("bundle", "lab", "efs")
"""Roles of the controller that each run of site.yml includes, also a run for a single host."""


WAITS = "waits: a training runs on the host, and a restart would disturb it"
ALONE = "left: the run is limited to some hosts"


@dataclass(frozen=True)
class Plan:
    """The plan of a converge.

    :param items: all items; those that keep coming back are already left to an operator.
    :param canary: the host that is repaired first and alone; empty without one.
    :param batches: the other hosts; those of a batch are repaired at the same time.
    :param own: whether objects of the cluster, or files of the controller, are repaired after the hosts.
    :param held: host -> why it is not repaired.
    :param refused: why nothing at all is repaired; else empty.
    :param repeats: keys of the items that keep coming back.
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
        """Return whether there is nothing to repair, so that no second run is needed."""
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
    """Decide what to repair.

    :param items: of the report of this run.
    :param hosts: all hosts of the site, in its order; `workers` are those without a control plane.
    :param unreachable: hosts that did not answer.
    :param training: hosts that hold a pod of a running training.
    :param converges: the keys that each earlier converge repaired, the newest last.
    :param approved: whether an operator has approved exactly this drift, so that the limits do not apply.
    :param some: whether the run is limited to some hosts, so that it repairs nothing else.
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
    # The same plays change both places, so one held place holds back the other.
    both = bool(own) and not any(name in held for name in OWN)
    return Plan(judged, canary, batches, both, held, repeats=repeats)


def _judged(item: Item, converges: Sequence[Collection[str]], repeats: int) -> Item:
    if item.kind in REPAIRED and limits.comes_back(item.key, converges, repeats):
        return replace(item, kind=PERSON, reason=f"repaired {repeats} times in a row: something else changes it back")
    return item


def _first(items: Sequence[Item]) -> str:
    """Return why no repair is possible without changing an item that is left to an operator; empty if one is."""
    for item in items:
        first = item.role in FIRST or item.module == "code_image"
        if item.place == CONTROLLER and first and item.kind not in REPAIRED:
            why = f", because {item.reason}" if item.reason else ""
            return f"held back: every run begins with {item.subject}, which needs an operator{why}"
    return ""


def _held(host: str, items: Sequence[Item], training: Collection[str]) -> str:
    """Return why a host is not repaired; else empty. A host is repaired as a whole or not at all."""
    for item in items:
        # No play changes the findings of this module, so they hold back no host.
        if item.place == host and item.kind not in REPAIRED and item.module != LOOKING:
            return f"held back: {item.subject} needs an operator" + (f", because {item.reason}" if item.reason else "")
    if host in training and any(item.place == host and item.kind == RESTART for item in items):
        return WAITS
    return ""


def _canary(ready: Sequence[str], workers: Collection[str], training: Collection[str], wanted: str) -> str:
    """Return the host of `reprovision_canary` if it is ready, else a worker without a training, else the first host."""
    if wanted in ready:
        return wanted
    calm = [name for name in ready if name in workers and name not in training]
    return next(iter([*calm, *ready]), "")


def _batches(hosts: Sequence[str], restarted: Collection[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Return the hosts without a restart in batches of `size`, then the others one by one."""
    calm = [name for name in hosts if name not in restarted]
    together = [tuple(calm[first : first + size]) for first in range(0, len(calm), size)]
    return (*together, *((name,) for name in hosts if name in restarted))
