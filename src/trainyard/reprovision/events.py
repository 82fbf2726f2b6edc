"""What ansible-runner tells of a run, reduced to what a report is made of.

Facts about ansible-runner 2.4.3 that this rests on: the difference of a result is an event of its own that comes before
the result's; a result without `no_log` has it, too; a result with `no_log` has nothing but a notice, so that only the
line that Ansible would show says whether it changed anything.

A result is whatever the root of its host wrote. Ansible removes the fields that begin with `_ansible_` and adds its
own, so that `_ansible_delegated_vars` is its word, and no text that it shows is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.untrusted import items, mapping, plain, text

Event = dict[str, Any]
"""`event`, and of a task's result `host`, `role`, `play`, `task`, `module`, `changed`, `result`; `delegated` is the
host that did it for `host`, `hidden` says that `no_log` was asked for, `looped` that it stands for one pass of a
loop."""

RESULTS = ("runner_on_ok", "runner_item_on_ok", "runner_on_failed", "runner_item_on_failed", "runner_on_unreachable")
KEPT = ("msg", "remedy", "steps", "diff", "planned", "unread", "verdict", "problems", "cmd", "rc", "warnings", "kind")
ARGUMENTS = ("name", "path", "dest", "unit", "kind", "namespace")
"""Arguments of a module that say what it is about."""

LINE = r"^(?P<state>\w+): \[{host}(?: -> (?P<delegated>[^\s\](]+)[^\]]*)?\]"
"""The line that Ansible shows for a result. Warnings of the host come before it, and below it all is indented."""

MESSAGE = 100_000
"""Characters of a text; the longest of the project is the answer of a program that failed."""
MOST_STEPS, MOST_WORDS = 10_000, 1_000
DEEPEST = -40
"""For `plain`, which counts from here to 6: objects of Kubernetes have some 20 levels."""
HOST_BYTES = 32 * 2**20
"""Characters of results that are kept of one host; those of a host that is set up whole have less than 2 million."""


class Reader:
    """Reduces the events of one run, in their order."""

    def __init__(self) -> None:
        self._diffs: dict[tuple[str, str], Any] = {}
        self._looped: set[tuple[str, str]] = set()
        self._kept: dict[str, int] = {}

    def read(self, raw: Mapping[str, Any]) -> Event | None:
        """One event as a report needs it; None for one that says nothing.

        :param raw: as ansible-runner hands it to an event handler.
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
            # Each pass has had its own event.
            found = {**found, "changed": False, "result": {}}
        return found

    def _result(self, kind: str, raw: Mapping[str, Any], data: Mapping[str, Any], place: tuple[str, str]) -> Event:
        result = mapping(data.get("res"))
        hidden = "censored" in result
        state, delegated = _shown(str(raw.get("stdout", "")), place[0])
        # Too long a result comes empty; then the shown line says it, as for a hidden one.
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
        """The same without its difference where one host has said more than all of a site's hosts do."""
        size = self._kept.get(host, 0) + len(json.dumps(kept, default=str))
        if size > HOST_BYTES:
            return {name: value for name, value in kept.items() if name not in ("diff", "steps", "warnings")}
        self._kept[host] = size
        return kept


def _shown(said: str, host: str) -> tuple[str, str]:
    """State and delegated host by the last line of a result's own form; empty texts where there is none."""
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
        # The result of a loop says that one of them failed, and they say why.
        kept["msg"] = "; ".join(dict.fromkeys(text(str(each.get("msg", ""))) for each in failures[:MOST_WORDS]))
    return kept


def _checked(name: str, value: Any) -> Any:
    """A field of a result in the form that its readers expect."""
    if name in ("steps", "problems", "warnings"):
        return [text(str(each), MESSAGE) for each in items(value)[:MOST_STEPS]]
    if name == "cmd" and isinstance(value, (list, tuple)):
        return [text(str(each)) for each in value[:MOST_WORDS]]
    if name in ("msg", "remedy", "cmd", "verdict", "kind", "unread"):
        return text(str(value), MESSAGE)
    return plain(value, DEEPEST)
