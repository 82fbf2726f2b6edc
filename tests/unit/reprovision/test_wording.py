"""No report depends on the words of a task or of a step."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.reprovision.test_found import events, raws
from trainyard.drift import subjects
from trainyard.drift.find import Found, find
from trainyard.drift.playbook_runner import Event, Reader

WORDS = ("steps", "prepared", "task", "play", "name", "msg", "remedy")
"""Fields of events that hold sentences for people."""


def reworded(value: Any) -> Any:
    """The same with each sentence in other words."""
    if isinstance(value, dict):
        return {key: _other(key, each) for key, each in value.items()}
    return [reworded(each) for each in value] if isinstance(value, list) else value


def _other(key: str, value: Any) -> Any:
    if key == "invocation":
        return value
    if key == "steps" and isinstance(value, list):
        return [f"Otherwise {number}" for number, _ in enumerate(value)]
    return f"Otherwise | {len(value)}" if key in WORDS and isinstance(value, str) else reworded(value)


def shown(found: Found) -> dict[str, Any]:
    """A report without the sentences that it shows: names of tasks, and reasons of refusals."""
    return {
        "items": [{**each.as_json(), "task": "", "reason": bool(each.reason)} for each in found.items],
        "consequences": [(each.host, each.role, each.what) for each in found.consequences],
        "hosts": (found.refused, found.unreached, found.seen, found.ended, found.verdict),
        "blind": len(found.blind),
    }


def read(stream: list[dict[str, Any]]) -> list[Event]:
    reader = Reader()
    return [found for raw in stream if (found := reader.read(raw))]


@pytest.mark.parametrize("name", ["hosts", "cluster", "role"])
def test_other_words_give_the_same_report(name: str) -> None:
    stream = raws(name)
    other = read([reworded(each) for each in stream])
    assert json.dumps(stream) != json.dumps([reworded(each) for each in stream])
    assert shown(find(other)) == shown(find(events(name)))


def test_no_reader_of_results_looks_at_a_sentence() -> None:
    """`prepared` says that a difference is a plan; that it is there counts, and never its words."""
    tree = ast.parse(Path(subjects.__file__).read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if text in ("steps", "task", "play", "msg")] == []
    assert texts.count("prepared") == 1
