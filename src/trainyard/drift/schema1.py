"""Convert reports of schema 1 to schema 2.

In schema 1 the key of an item contained the name of its task. If a result named no object, the task name was also its
subject. With the conversion an old site keeps its ages, its repairs in a row and its approvals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.untrusted import at, items, mapping, number
from .find import CONNECTION, REFUSAL
from .items import DONE, FAILED, LEFT, PRIVATE, PROVEN, key_of
from .subjects import HIDDEN, bare_subject, hidden_subject

OLD, NEW = 1, 2

_FIELDS = ("host", "role", "task", "module", "subject", "before", "after")


def report(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of schema 1 as one of schema 2.

    :param document: the content of a `report.json`.
    """
    keys = keys_of(document)
    found = [{**mapping(each), **_renamed(mapping(each)), **_outcome(each)} for each in items(document.get("items"))]
    repaired = document.get("repaired")
    if repaired is not None:
        repaired = list(dict.fromkeys(keys.get(str(key), str(key)) for key in items(repaired)))
    return {**document, "schema": NEW, "items": found, "repaired": repaired}


def history(document: Mapping[str, Any], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ages of schema 1 as those of schema 2, without ages whose item is in no report.

    :param document: the content of a `history.json`.
    :param reports: the original reports of schema 1.
    """
    keys: dict[str, str] = {}
    for each in reports:
        keys |= keys_of(each)
    found: dict[str, Any] = {}
    for old, age in mapping(document.get("items")).items():
        new = keys.get(old)
        # Two old items may be one item in schema 2. It gets the older age.
        if new and (new not in found or _begin(age) < _begin(found[new])):
            found[new] = age
    return {"schema": NEW, "items": found}


def _begin(age: Any) -> float:
    """Return when an age begins, in seconds since the epoch; infinite if it has no valid start."""
    begin = number(at(age, "first_seen"))
    return math.inf if begin is None else begin


def keys_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys of the items of a report: key of schema 1 -> key of schema 2."""
    return {
        str(item.get("key", "")): _renamed(item)["key"]
        for item in map(mapping, items(mapping(document).get("items")))
        if all(isinstance(item.get(name), str) for name in _FIELDS)
    }


OUTCOMES = {
    "repaired, proven": PROVEN,
    "repaired": DONE,
    "failed": FAILED,
    "held back": LEFT,
    "left": LEFT,
    "waits": LEFT,
}
"""Beginning of the sentence about an item in schema 1 -> outcome. The first match counts."""


def _outcome(item: Any) -> dict[str, str]:
    words = str(mapping(item).get("done") or "")
    return {"outcome": next((each for begin, each in OUTCOMES.items() if words.startswith(begin)), "")}


def _renamed(item: Mapping[str, Any]) -> dict[str, str]:
    host, role, task, module, subject, before, after = (str(item.get(name, "")) for name in _FIELDS)
    of_task = subject == task.rpartition("| ")[2] and subject != CONNECTION
    if of_task and not before and not after:
        subject = REFUSAL
    elif of_task and (before == HIDDEN or after == PRIVATE):
        subject = hidden_subject(module)
    elif of_task:
        subject = bare_subject(module)
    return {"subject": subject, "key": key_of(host, role, module, subject)}
