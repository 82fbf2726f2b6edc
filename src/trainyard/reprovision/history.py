"""The ages of a site's items: when each was first seen, and in how many runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .item import Item

SCHEMA = 2


@dataclass(frozen=True)
class Entry:
    """The age of one item.

    :param host: host of the item; if a run does not check the host, the item keeps its age.
    :param first_seen: seconds since the epoch; `last_seen` has the same unit.
    :param runs: number of consecutive reports with the item.
    """

    host: str
    first_seen: float
    last_seen: float
    runs: int = 1


History = dict[str, Entry]


def aged(
    items: Iterable[Item], history: Mapping[str, Entry], now: float, unseen: Collection[str] = ()
) -> tuple[list[Item], History]:
    """Return the items with their ages, and the new history.

    :param now: seconds since the epoch.
    :param unseen: hosts that this run did not check; their items keep their ages.
    """
    kept: History = {}
    told = []
    for item in items:
        old = history.get(item.key)
        entry = Entry(
            host=item.host,
            first_seen=old.first_seen if old else now,
            last_seen=now,
            runs=old.runs + 1 if old else 1,
        )
        kept[item.key] = entry
        told.append(replace(item, first_seen=entry.first_seen, last_seen=now, runs=entry.runs))
    return told, kept | {key: old for key, old in history.items() if key not in kept and old.host in unseen}


def known(items: Iterable[Item], history: Mapping[str, Entry], now: float) -> list[Item]:
    """Return the items of another check run within the same run with their ages. The count of runs stays."""
    told = []
    for item in items:
        old = history.get(item.key) or Entry(item.host, now, now)
        told.append(replace(item, first_seen=old.first_seen, last_seen=now, runs=old.runs))
    return told


def as_json(history: Mapping[str, Entry]) -> dict[str, Any]:
    """Return the document for the disk."""
    return {"schema": SCHEMA, "items": {key: asdict(entry) for key, entry in sorted(history.items())}}


def from_json(document: Any) -> History:
    """Return the history from a document of `as_json`; empty for any other document, so that ages start again."""
    try:
        if document["schema"] != SCHEMA:
            return {}
        return {
            str(key): Entry(str(each["host"]), float(each["first_seen"]), float(each["last_seen"]), int(each["runs"]))
            for key, each in document["items"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
