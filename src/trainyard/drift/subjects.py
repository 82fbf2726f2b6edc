"""The differences of a changed result, as data: one change for each file, unit, package or object.

Parts: the first difference between two values, as short text for a report; the changes of a result. Our modules name
their differences in the diff (`core/plan.py`). Other modules use the diff format of Ansible. No code here reads the
text of steps or the names of tasks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ..core.plan import MISSING, Change
from ..core.untrusted import items, line, mapping
from .playbook_runner import Event

SHORT = 80
"""Limit of the characters of a value in a report."""

NAMES = {None: MISSING, "absent": MISSING, True: "yes", False: "no", "": "empty"}


def difference(before: Any, after: Any) -> tuple[str, str]:
    """Return the first place in which two values differ, for each side, and the number of further places."""
    if isinstance(before, list) and isinstance(after, list):
        gone, new = _lines(before, after)
        return _first(gone), _first(new)
    if isinstance(before, dict) and isinstance(after, dict):
        places = list(_places(before, after, ""))
        if places:
            (path, old, new), more = places[0], f" (+{len(places) - 1} more)" if len(places) > 1 else ""
            olds, news = difference(old, new) if isinstance(old, list) and isinstance(new, list) else (_s(old), _s(new))
            # The text of a file needs no label.
            place = "" if path == "text" else f"{path}: "
            return short(f"{place}{olds}"), short(f"{place}{news}{more}")
    return _s(before), _s("there") if before in (None, "absent") and isinstance(after, (dict, list)) else _s(after)


def _lines(before: list[Any], after: list[Any]) -> tuple[list[str], list[str]]:
    """Return the lines that only one side has, in their order. If only the order differs, return the first difference.

    Lines are counted and not compared pairwise, as a host may send a hundred thousand similar lines.
    """
    olds, news = [_s(each) for each in before], [_s(each) for each in after]
    gone, new = _only(olds, news), _only(news, olds)
    if gone or new:
        return gone, new
    return next(([old], [now]) for old, now in zip(olds, news, strict=True) if old != now) if olds != news else ([], [])


def _only(lines: list[str], others: list[str]) -> list[str]:
    left, found = Counter(others), []
    for each in lines:
        left[each] -= 1
        if left[each] < 0:
            found.append(each)
    return found


def _first(lines: list[str]) -> str:
    full = [each for each in lines if each.strip()] or lines
    return short(full[0].strip()) + (f" (+{len(lines) - 1} lines)" if len(lines) > 1 else "") if full else "-"


def _places(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        below = f"{path}.{key}" if path else str(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _places(old, new, below)
        elif old != new:
            yield below, old, new


def _s(value: Any) -> str:
    if isinstance(value, (str, bool, type(None))):
        return short(NAMES.get(value, str(value)))
    return short(json.dumps(value) if isinstance(value, (dict, list)) else str(value))


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


HIDDEN = "differs, not shown"
"""Replaces a value of a task with `no_log`."""

MOST = 200
"""Limit of the named changes of one result; a role of the project writes about 20 files at once."""

MOST_NAMES = 2_000
"""Limit of the names in a list that is compared pairwise."""

MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
"""Errors from a malformed difference. The host controls its form."""


def hidden_subject(module: str) -> str:
    """Return the subject of the changes of a module under `no_log`; those of a role on one host are one difference."""
    return f"values of {module}, not shown"


def bare_subject(module: str) -> str:
    """Return the subject of a result that names no object."""
    return f"result of {module}"


def changes(event: Event) -> list[Change]:
    """Return the changes of a changed result, in its order; at least one."""
    result = event["result"]
    if event["hidden"]:
        return [Change(hidden_subject(event["module"]), HIDDEN, HIDDEN)]
    try:
        found = [_checked(each) for each in islice(_changes(result), MOST)]
    except MALFORMED:
        found = []
    return found or [Change(_about(event), after="changed")]


def _changes(result: Mapping[str, Any]) -> Iterator[Change]:
    diff = result.get("diff")
    if isinstance(diff, dict) and "prepared" in diff:
        yield from _plan(diff)
    elif diff:
        yield from _files(diff, result)


def _plan(diff: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of a plan: those that its steps name, and the changed states that no step names."""
    named = [_named(mapping(each)) for each in items(diff.get("changes"))[:MOST]]
    if diff.get("by_subject", True):
        # States first: a program that runs after a file was written follows the file.
        subjects = {each.subject for each in named}
        states = _states(diff["before"] or {}, diff["after"] or {})
        yield from (each for each in states if each.subject not in subjects)
    yield from named


def _named(change: Mapping[str, Any]) -> Change:
    before, after = difference(change.get("before"), change.get("after"))
    because = tuple(str(each) for each in items(change.get("because"))[:MOST])
    return Change(str(change["subject"]), before, after, change.get("follows") is True, because)


def _checked(change: Change) -> Change:
    """Return the change with all fields as text, as a host may have sent other types."""
    return replace(
        change, subject=line(str(change.subject)), before=short(str(change.before)), after=short(str(change.after))
    )


def _about(event: Event) -> str:
    """Return the subject of a result without a difference: its command, or the object that its arguments name."""
    result = event["result"]
    arguments = result.get("arguments", {})
    command = result.get("cmd")
    if command:
        return short(command if isinstance(command, str) else " ".join(str(word) for word in command))
    name = next((arguments[each] for each in ("dest", "path", "unit", "name") if arguments.get(each)), "")
    kind = arguments.get("kind", "")
    found = " ".join(filter(None, (kind, f"{arguments['namespace']}/{name}" if arguments.get("namespace") else name)))
    return str(found or result.get("label") or bare_subject(event["module"]))


def _states(before: Any, after: Any) -> Iterator[Change]:
    """Yield the changes between two states: mappings of objects or files by name, or lists of names."""
    if isinstance(before, list) or isinstance(after, list):
        before, after = list(before)[:MOST_NAMES], list(after)[:MOST_NAMES]
        for each in [each for each in before if each not in after]:
            yield Change(str(each), "there", MISSING)
        for each in [each for each in after if each not in before]:
            yield Change(str(each), MISSING, "there")
        return
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield Change(key, *difference(before.get(key), after.get(key)))


def _files(diff: Any, result: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of diffs in the format of Ansible: texts with headers, or states of one path."""
    for each in diff if isinstance(diff, list) else [diff]:
        if not isinstance(each, dict):
            continue
        before, after = each.get("before"), each.get("after")
        arguments = result.get("arguments", {})
        path = arguments.get("dest") or arguments.get("path")
        path = path or each.get("after_header") or each.get("before_header")
        if isinstance(before, dict) and isinstance(after, dict):
            path = path or after.get("path") or before.get("path")
        if before != after:
            lines = (each.splitlines() if isinstance(each, str) else each for each in (before or None, after or None))
            yield Change(str(path or "file"), *difference(*lines))
