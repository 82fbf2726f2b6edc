"""Rules and their hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .answer import Evidence
from .view import View


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
