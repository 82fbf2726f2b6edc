"""Ages: an item keeps its own as long as it is seen, or cannot be looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.drift.items import CLASSES, Item
from trainyard.drift.items import from_json as item_from_json
from trainyard.drift.report_store import Entry, aged, as_json, from_json

ITEM = Item("worker1", "base", "Set", "kernel_settings", "sysctl a", "0", "1", "repairable")
OTHER = Item("worker2", "base", "Set", "kernel_settings", "sysctl a", "0", "1", "repairable")


def test_an_age_begins_goes_on_and_ends() -> None:
    (first,), history = aged([ITEM], {}, 100.0)
    assert (first.first_seen, first.last_seen, first.runs) == (100.0, 100.0, 1)
    (second,), history = aged([ITEM], history, 200.0)
    assert (second.first_seen, second.last_seen, second.runs) == (100.0, 200.0, 2)
    found, history = aged([], history, 300.0)
    assert (found, history) == ([], {})
    (again,), _ = aged([ITEM], history, 400.0)
    assert (again.first_seen, again.runs) == (400.0, 1)


def test_what_could_not_be_looked_at_keeps_its_age() -> None:
    _, history = aged([ITEM, OTHER], {}, 100.0)
    _, history = aged([], history, 200.0, unseen=["worker1"])
    (back,), _ = aged([ITEM], history, 300.0)
    assert (back.first_seen, back.runs) == (100.0, 2)
    assert OTHER.key not in history


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"before": "2", "after": "3"}, True),
        ({"kind": "person", "reason": "x", "runs": 9, "done": "repaired"}, True),
        ({"host": "worker2"}, False),
        ({"role": "docker"}, False),
        ({"task": "Other"}, True),
        ({"module": "copy"}, False),
        ({"subject": "sysctl b"}, False),
    ],
)
def test_a_key_is_that_of_the_thing_and_not_of_its_value(other: dict[str, Any], same: bool) -> None:
    assert (Item(**{**{name: getattr(ITEM, name) for name in ITEM.__match_args__}, **other}).key == ITEM.key) == same


def test_a_key_stays_the_same_for_ever() -> None:
    """Reports of years refer to it."""
    assert ITEM.key == "ba65e13bf47b244f"


def test_history_and_items_are_read_again() -> None:
    _, history = aged([ITEM], {}, 100.0)
    assert from_json(json.loads(json.dumps(as_json(history)))) == history == {ITEM.key: Entry("worker1", 100.0, 100.0)}
    document = json.loads(json.dumps(ITEM.as_json()))
    assert document["class"] in CLASSES and "kind" not in document
    assert item_from_json({**document, "new_field": 1}) == ITEM


@pytest.mark.parametrize("document", [None, [], {}, {"schema": 9, "items": {}}, {"schema": 2, "items": {"a": {}}}])
def test_a_history_that_cannot_be_read_begins_anew(document: Any) -> None:
    assert from_json(document) == {}
