"""Values that the inventory itself states, without those that a host chooses. Plugins share this file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

FACTS = re.compile(r"ansible_facts|ansible_(default|all)_ipv")
"""Marks of a value that comes from a host."""
WORDS = re.compile(r"[A-Za-z_]\w*")


def stated(hostvars: Any, host: str, name: str) -> str:
    """Return a variable of the inventory as text; empty if it is not set, or comes from facts."""
    raw: Mapping[str, Any] = hostvars.raw_get(host) if hasattr(hostvars, "raw_get") else hostvars[host]
    if name not in raw or is_made_of_facts(raw, raw[name]):
        return ""
    return str(hostvars[host].get(name) or "")


def is_made_of_facts(raw: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value uses facts, directly or through other variables.

    :param raw: the untemplated variables of a host.
    """
    return any(isinstance(each, str) and FACTS.search(each) for each in parts_of(raw, value))


def parts_of(raw: Mapping[str, Any], value: Any) -> list[Any]:
    """Return the texts and numbers of a value, and of the variables that its templates use, also through others.

    :param raw: the untemplated variables of a host. Nothing is decrypted.
    """
    found: list[Any] = []
    seen: set[str] = set()
    todo = [value]
    while todo:
        parts = [part for each in todo for part in _leaves(each)]
        found += parts
        texts = [part for part in parts if isinstance(part, str) and "{" in part]
        used = {word for text in texts for word in WORDS.findall(text) if word in raw} - seen
        seen |= used
        todo = [raw[word] for word in used]
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (Mapping, list, tuple)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(each)
    else:
        yield value
