"""What a rule is, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .answer import Evidence
from .view import View


@dataclass(frozen=True)
class Hit:
    """One thing that a rule has found.

    :param object: as in `Finding`; hits of one rule with the same message are joined into one finding.
    :param effect: of the finding, with `{}` for the objects.
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

    :param layer: what is broken in a lower one explains what waits in a higher one.
    :param find: the rule; its docstring is the meaning of its code.
    :param remedy: for the page of all codes; a hit has its own.
    :param fault: whether a hit is a fault; else it is worth knowing.
    """

    code: str
    layer: int
    find: Function
    remedy: str
    fault: bool = True

    @property
    def meaning(self) -> str:
        """What the code says, a sentence."""
        return str(self.find.__doc__).strip()


def joined(hits: Iterable[Hit]) -> list[Hit]:
    """Hits of one rule, those with the same message as one with all their objects."""
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
