"""The rules of `trainyard why` and their hits, with helpers for rules about pods without a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..trainings.pod_places import role_of
from .answer import Evidence
from .node_blockers import Placement, placements
from .view import IMPORT, View


@dataclass(frozen=True)
class Hit:
    """A match of a rule.

    :param object: as in `Finding`; hits of one rule with the same message become one finding.
    :param effect: as in `Finding`, with `{}` for the objects.
    """

    object: str
    message: str
    effect: str
    evidence: Sequence[Evidence] = ()
    remedy: str = ""


Function = Callable[[View], Iterator[Hit]]


@dataclass(frozen=True)
class Rule:
    """A row of the table.

    :param layer: a fault in a lower layer explains faults in higher layers.
    :param find: the rule; its docstring is the meaning of its code.
    :param remedy: for the table of all codes; each hit has its own.
    :param fault: whether a hit is a fault; otherwise it is a note.
    """

    code: str
    layer: int
    find: Function
    remedy: str
    fault: bool = True

    @property
    def meaning(self) -> str:
        """The meaning of the code, in sentences."""
        return str(self.find.__doc__).strip()


def joined(hits: Iterable[Hit]) -> list[Hit]:
    """Join hits of one rule that have the same message."""
    found: dict[str, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.message, []).append(hit)
    return [
        Hit(
            ", ".join(dict.fromkeys(each.object for each in same)),
            message,
            same[0].effect,
            list(dict.fromkeys(one for each in same for one in each.evidence)),
            same[0].remedy,
        )
        for message, same in found.items()
    ]


EFFECT = "{} cannot be placed"


def of(view: View, code: str) -> list[Placement]:
    """Return the pods without a node that wait for the reason of this code."""
    return [each for each in placements(view) if each.code == code]


def said(each: Placement) -> list[Evidence]:
    """Return the scheduler's message, without its part about preemption."""
    text = each.said.partition(" preemption:")[0].rstrip(" .")
    return [Evidence("scheduler", "", since(each), f'"{text}"')] if text else []


def since(each: Placement) -> str:
    """Return the time since which the scheduler has found no node, in the cluster's format."""
    conditions = (each.pod.get("status") or {}).get("conditions") or []
    return next((str(one.get("lastTransitionTime") or "") for one in conditions if one["type"] == "PodScheduled"), "")


def role(each: Placement) -> str:
    """Return the role of the pod, as named in `workloads_trainings`."""
    return role_of(each.pod) if each.place != IMPORT else IMPORT
