"""What a kind of drift is, and what has to be found of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stand import Stand

Do = Callable[[Stand], None]
PROVEN = "repaired, proven"


def nothing(stand: Stand) -> None:
    """Nothing has to be done."""


@dataclass(frozen=True)
class Kind:
    """One row of docs/drift.md.

    :param row: its words there.
    :param found: `HOST SUBJECT` of the items that have to be found, as patterns, each of which fits one at least.
    :param undo: what a person would do; of what is repaired, nothing.
    :param follows: further items that come with it.
    :param needs: group of the inventory without which it cannot be tried.
    :param settle: undoing it leaves something that `site.yml` puts right, such as a restart.
    """

    row: str
    found: Sequence[str]
    inject: Do
    undo: Do = nothing
    follows: Sequence[str] = field(default=())
    needs: str = ""
    settle: bool = False

    def mine(self, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The items that have to be found."""
        return [item for item in items if any(fits(item, pattern) for pattern in self.found)]

    def missing(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """What was not found."""
        return [pattern for pattern in self.found if not any(fits(item, pattern) for item in items)]


def told(item: Mapping[str, Any]) -> str:
    """`HOST SUBJECT` of an item."""
    return f"{item['host']} {item['subject']}"


def fits(item: Mapping[str, Any], pattern: str) -> bool:
    return fnmatchcase(told(item), pattern)


def strange(kinds: Sequence[Kind], items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Items that no kind explains: false ones."""
    patterns = [pattern for kind in kinds for pattern in (*kind.found, *kind.follows)]
    return [told(item) for item in items if not any(fits(item, pattern) for pattern in patterns)]
