"""Kinds of drift, and the items expected in a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stand import Stand

Do = Callable[[Stand], None]
PROVEN = "repaired, proven"


def nothing(stand: Stand) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Kind:
    """One row of docs/reference/drift.md.

    :param row: its text there.
    :param found: patterns for `HOST SUBJECT` of the expected items; each must match at least one item.
    :param undo: the operator's action; nothing for kinds that are repaired.
    :param follows: further items that it causes.
    :param needs: group of the inventory that it requires.
    :param settle: whether undoing it leaves something for `site.yml` to fix, such as a restart.
    """

    row: str
    found: Sequence[str]
    inject: Do
    undo: Do = nothing
    follows: Sequence[str] = field(default=())
    needs: str = ""
    settle: bool = False

    def mine(self, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the expected items."""
        return [item for item in items if any(fits(item, pattern) for pattern in self.found)]

    def missing(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the patterns without a matching item."""
        return [pattern for pattern in self.found if not any(fits(item, pattern) for item in items)]


def told(item: Mapping[str, Any]) -> str:
    """Return `HOST SUBJECT` of an item."""
    return f"{item['host']} {item['subject']}"


def fits(item: Mapping[str, Any], pattern: str) -> bool:
    return fnmatchcase(told(item), pattern)


def strange(kinds: Sequence[Kind], items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return items that no kind explains: false ones."""
    patterns = [pattern for kind in kinds for pattern in (*kind.found, *kind.follows)]
    return [told(item) for item in items if not any(fits(item, pattern) for pattern in patterns)]
