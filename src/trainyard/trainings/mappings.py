"""Merge descriptions of a training, and report faults that prevent it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .arguments import Fault
from .roles import ROLES

JOINED = frozenset({"limits", "requests", "env", "node_selector", "flags", "logs", "data", *ROLES})
"""Keys whose mappings are merged key by key. All other values are replaced as a whole."""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two descriptions. `above` takes precedence; volumes are merged by name."""
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
    """Yield a fault for each key that needs a mapping and has another value. The value may be secret and is not shown.

    :param place: prefix of the keys: the role and a dot.
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
    """Return whether a value is a short form: the number of a role's pods, or the name of a data source."""
    return (key in ROLES and isinstance(value, int | str)) or (key == "data" and isinstance(value, str))
