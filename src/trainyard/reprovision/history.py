"""Since when a site has an item, and in how many runs it was seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .item import Item

SCHEMA = 2


@dataclass(frozen=True)
class Entry:
    """What is remembered of one item, by its key.

    :param host: where it is: what was not looked at keeps its age.
    :param first_seen: seconds since the epoch; `last_seen` is the same.
    :param runs: reports in a row that had it.
    """

    host: str
    first_seen: float
    last_seen: float
    runs: int = 1


History = dict[str, Entry]


def aged(
    items: Iterable[Item], history: Mapping[str, Entry], now: float, unseen: Collection[str] = ()
) -> tuple[list[Item], History]:
    """The items with their ages, and the history to be kept.

    :param now: seconds since the epoch.
    :param unseen: hosts that this run could not look at, or was not to: their items keep their ages for the next one.
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
    """The items of a further look of the same run with their ages; it counts as no run of its own."""
    told = []
    for item in items:
        old = history.get(item.key) or Entry(item.host, now, now)
        told.append(replace(item, first_seen=old.first_seen, last_seen=now, runs=old.runs))
    return told


def as_json(history: Mapping[str, Entry]) -> dict[str, Any]:
    """What is written to disk."""
    return {"schema": SCHEMA, "items": {key: asdict(entry) for key, entry in sorted(history.items())}}


def from_json(document: Any) -> History:
    """What `as_json` wrote; empty for anything else: ages then begin anew."""
    try:
        if document["schema"] != SCHEMA:
            return {}
        return {
            str(key): Entry(str(each["host"]), float(each["first_seen"]), float(each["last_seen"]), int(each["runs"]))
            for key, each in document["items"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
