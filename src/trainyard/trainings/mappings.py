"""Joining descriptions of a training key by key, and refusing what cannot be joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .arguments import Fault
from .roles import ROLES

JOINED = frozenset({"limits", "requests", "env", "node_selector", "flags", "logs", "data", *ROLES})
"""Mappings that are joined by key; all else is replaced as a whole."""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two descriptions of which `above` has the last word; volumes are joined by their names."""
    both = {**below, **above}
    for key in below.keys() & above.keys():
        one, other = below[key], above[key]
        if key in JOINED and isinstance(one, Mapping) and isinstance(other, Mapping):
            both[key] = merged(one, other)
        elif key == "volumes" and isinstance(one, list) and isinstance(other, list):
            named = {each.get("name"): each for each in [*one, *other] if isinstance(each, Mapping)}
            both[key] = list(named.values())
    return both


def no_mappings(described: Mapping[str, Any], place: str = "") -> Iterator[Fault]:
    """Keys that have keys of their own and were given something else; the value is not shown, it may be a secret.

    :param place: the role whose keys these are, and a dot.
    """
    for key, value in described.items():
        if key not in JOINED or value is None:
            continue
        if isinstance(value, Mapping):
            yield from no_mappings(value, f"{key}.") if key in ROLES else ()
        elif place or not _has_a_short_form(key, value):
            kind = "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a single value"
            yield Fault(f"{place}{key}", f"is {kind}", "it must be a mapping, with keys of its own")


def _has_a_short_form(key: str, value: Any) -> bool:
    """A role may be the number of its pods, and data the name of its source."""
    return (key in ROLES and isinstance(value, int | str)) or (key == "data" and isinstance(value, str))
