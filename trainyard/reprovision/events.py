"""What ansible-runner tells of a run, reduced to what a report is made of.

Facts about ansible-runner 2.4.3 that this rests on: the difference of a result is an event of its own that comes before
the result's; a result without `no_log` has it, too; a result with `no_log` has nothing but a notice, so that only the
line that Ansible would show says whether it changed anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Event = dict[str, Any]
"""`event`, and of a task's result `host`, `role`, `play`, `task`, `module`, `changed`, `result`; `delegated` is the
host that did it for `host`, `hidden` says that `no_log` was asked for, `looped` that it stands for one pass of a
loop."""

RESULTS = ("runner_on_ok", "runner_item_on_ok", "runner_on_failed", "runner_item_on_failed", "runner_on_unreachable")
KEPT = ("msg", "remedy", "steps", "diff", "planned", "verdict", "problems", "cmd", "rc", "warnings", "kind")
ARGUMENTS = ("name", "path", "dest", "unit", "kind", "namespace")
"""Arguments of a module that say what it is about."""

CHANGED = re.compile(r"^changed: \[", re.MULTILINE)
DELEGATED = re.compile(r"^\w+: \[\S+ -> ([^\s\](]+)", re.MULTILINE)


class Reader:
    """Reduces the events of one run, in their order."""

    def __init__(self) -> None:
        self._diffs: dict[tuple[str, str], Any] = {}
        self._looped: set[tuple[str, str]] = set()

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
        result = data.get("res") or {}
        shown = str(raw.get("stdout", ""))
        # Too long a result comes empty; then the shown line says it, as for a hidden one.
        changed = bool(result["changed"]) if "changed" in result else CHANGED.search(shown) is not None
        hidden = "censored" in result
        delegated = DELEGATED.search(shown)
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
            "delegated": delegated[1] if delegated else "",
            "hidden": hidden,
            "ignored": bool(data.get("ignore_errors")),
            "result": {},
        }
        diff = self._diffs.pop(place, None)
        if kind == "runner_on_ok" and not changed and "verdict" not in result:
            return event
        if not hidden:
            event["result"] = _kept(result)
            event["result"].setdefault("diff", diff)
        return event


def _kept(result: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: result[name] for name in KEPT if name in result}
    arguments = (result.get("invocation") or {}).get("module_args") or {}
    kept["arguments"] = {name: arguments[name] for name in ARGUMENTS if isinstance(arguments.get(name), str)}
    if "_ansible_item_label" in result:
        kept["label"] = str(result["_ansible_item_label"])
    failures = [each for each in result.get("results") or [] if isinstance(each, dict) and each.get("failed")]
    if failures:
        # The result of a loop says that one of them failed, and they say why.
        kept["msg"] = "; ".join(dict.fromkeys(str(each.get("msg", "")) for each in failures))
    return kept
