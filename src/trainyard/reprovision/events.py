"""Reduce the events of ansible-runner to the data of a report.

This relies on facts about ansible-runner 2.4.3. The diff of a result has its own event, before that of the result. A
result without `no_log` also contains the diff. A result with `no_log` has only a notice, so only the line that Ansible
displays shows whether it changed anything.

The root user of a host controls its results. Ansible removes the fields that begin with `_ansible_` and adds its own,
so `_ansible_delegated_vars` is trusted. Displayed text is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.untrusted import items, mapping, plain, text

Event = dict[str, Any]
"""`event`, and for the result of a task `host`, `role`, `play`, `task`, `module`, `changed`, `result`. `delegated` is
the host that executed it for `host`. `hidden` means `no_log`, and `looped` one iteration of a loop."""

RESULTS = ("runner_on_ok", "runner_item_on_ok", "runner_on_failed", "runner_item_on_failed", "runner_on_unreachable")
KEPT = ("msg", "remedy", "steps", "diff", "planned", "unread", "verdict", "problems", "cmd", "rc", "warnings", "kind")
ARGUMENTS = ("name", "path", "dest", "unit", "kind", "namespace")
"""Arguments of a module that name its object."""

LINE = r"^(?P<state>\w+): \[{host}(?: -> (?P<delegated>[^\s\](]+)[^\]]*)?\]"
"""The line that Ansible displays for a result. Warnings of the host precede it, and the lines below are indented."""

MESSAGE = 100_000
"""Limit of the characters of a text; the longest of the project is the output of a failed program."""
MOST_STEPS, MOST_WORDS = 10_000, 1_000
DEEPEST = -40
"""Start value for `plain`, which counts up to 6: objects of Kubernetes have about 20 levels."""
HOST_BYTES = 32 * 2**20
"""Limit of the characters of one host's results; a full installation of a host has less than 2 million."""


class Reader:
    """Reduces the events of one run, in their order."""

    def __init__(self) -> None:
        self._diffs: dict[tuple[str, str], Any] = {}
        self._looped: set[tuple[str, str]] = set()
        self._kept: dict[str, int] = {}

    def read(self, raw: Mapping[str, Any]) -> Event | None:
        """Return the reduced event; None if it is irrelevant for a report.

        :param raw: the event that ansible-runner passes to an event handler.
        """
        kind, data = raw.get("event"), raw.get("event_data") or {}
        place = (str(data.get("host", "")), str(data.get("task_uuid", "")))
        if kind == "runner_on_file_diff":
            self._diffs[place] = data.get("diff")
            return None
        if kind == "playbook_on_stats":
            names = ("processed", "ok", "changed", "dark", "failures", "rescued")
            return {"event": kind, **{name: dict(data.get(name) or {}) for name in names}}
        if kind == "playbook_on_play_start":
            return {"event": kind, "play": data.get("name", "")}
        if kind not in RESULTS:
            return None
        found = self._result(str(kind), raw, data, place)
        if kind.startswith("runner_item_"):
            self._looped.add(place)
        elif place in self._looped and kind == "runner_on_ok":
            # Each iteration has had its own event.
            found = {**found, "changed": False, "result": {}}
        return found

    def _result(self, kind: str, raw: Mapping[str, Any], data: Mapping[str, Any], place: tuple[str, str]) -> Event:
        result = mapping(data.get("res"))
        hidden = "censored" in result
        state, delegated = _shown(str(raw.get("stdout", "")), place[0])
        # A result that is too long arrives empty. Then the displayed line counts, as for a hidden result.
        changed = bool(result["changed"]) if "changed" in result else state == "changed"
        if result and not hidden and "_ansible_delegated_vars" not in result:
            delegated = ""
        event: Event = {
            "event": kind,
            "created": raw.get("created", ""),
            "host": place[0],
            "role": str(data.get("role", "")),
            "play": str(data.get("play", "")),
            "task": str(data.get("task", "")),
            "module": str(data.get("resolved_action") or data.get("task_action") or "").rpartition(".")[2],
            "changed": changed,
            "looped": kind.startswith("runner_item_"),
            "delegated": delegated,
            "hidden": hidden,
            "ignored": bool(data.get("ignore_errors")),
            "result": {},
        }
        diff = self._diffs.pop(place, None)
        if kind == "runner_on_ok" and not changed and "verdict" not in result:
            return event
        if not hidden:
            event["result"] = self._bounded(place[0], _kept(result, diff))
        return event

    def _bounded(self, host: str, kept: dict[str, Any]) -> dict[str, Any]:
        """Return the result, without its diff if the results of its host exceed the limit."""
        size = self._kept.get(host, 0) + len(json.dumps(kept, default=str))
        if size > HOST_BYTES:
            return {name: value for name, value in kept.items() if name not in ("diff", "steps", "warnings")}
        self._kept[host] = size
        return kept


def _shown(said: str, host: str) -> tuple[str, str]:
    """Return the state and the delegated host from the last line of a result; empty texts without such a line."""
    found = list(re.finditer(LINE.format(host=re.escape(host)), said, re.MULTILINE))[-1:]
    return (found[0]["state"], found[0]["delegated"] or "") if found else ("", "")


def _kept(result: Mapping[str, Any], diff: Any) -> dict[str, Any]:
    kept = {name: _checked(name, result[name]) for name in KEPT if name in result}
    kept.setdefault("diff", plain(diff, DEEPEST))
    arguments = mapping(mapping(result.get("invocation")).get("module_args"))
    found = {name: arguments[name] for name in ARGUMENTS if isinstance(arguments.get(name), str)}
    kept["arguments"] = {name: text(value) for name, value in found.items()}
    if "_ansible_item_label" in result:
        kept["label"] = text(str(result["_ansible_item_label"]))
    failures = [each for each in items(result.get("results")) if isinstance(each, dict) and each.get("failed")]
    if failures:
        # The result of a loop has no reasons; its iterations have.
        kept["msg"] = "; ".join(dict.fromkeys(text(str(each.get("msg", ""))) for each in failures[:MOST_WORDS]))
    return kept


def _checked(name: str, value: Any) -> Any:
    """Return a field of a result in the type that its readers expect."""
    if name in ("steps", "problems", "warnings"):
        return [text(str(each), MESSAGE) for each in items(value)[:MOST_STEPS]]
    if name == "cmd" and isinstance(value, (list, tuple)):
        return [text(str(each)) for each in value[:MOST_WORDS]]
    if name in ("msg", "remedy", "cmd", "verdict", "kind", "unread"):
        return text(str(value), MESSAGE)
    return plain(value, DEEPEST)
