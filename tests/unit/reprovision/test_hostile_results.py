"""A report of results in any form: no error, no other host, no work without end, no result without a bound."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.drift import playbook_runner as reading
from trainyard.drift.find import find
from trainyard.drift.playbook_runner import Event, Reader
from trainyard.drift.subjects import MOST, changes, difference

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("prepared", "before", "after", "before_header", "by_subject", "changes", "text", "path")
DIFFS = st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=4) | st.lists(ANYTHING, max_size=2) | ANYTHING
CHANGE = st.dictionaries(st.sampled_from(("subject", "before", "after", "follows", "because")), ANYTHING, max_size=5)
PLANS = st.fixed_dictionaries({"prepared": st.just(""), "changes": st.lists(CHANGE | ANYTHING, max_size=3)})
RESULTS = st.fixed_dictionaries(
    {"changed": st.just(True)},
    optional=dict.fromkeys((*reading.KEPT, "invocation", "results", "_ansible_item_label"), ANYTHING),
)


def read(result: Any, module: str = "host_files", shown: str = "changed: [w2]", reader: Reader | None = None) -> Event:
    data = {"host": "w2", "task": "t", "task_uuid": "u", "role": "base", "resolved_action": module, "res": result}
    found = (reader or Reader()).read({"event": "runner_on_ok", "stdout": shown, "event_data": data})
    assert found
    return found


@settings(deadline=None)
@given(
    result=RESULTS, diff=DIFFS | PLANS, module=st.sampled_from(["host_files", "training", "cluster_findings", "file"])
)
def test_a_result_of_any_form_is_an_item_of_its_host(result: dict[str, Any], diff: Any, module: str) -> None:
    (event,) = [read({**result, "diff": diff, "planned": True}, module)]
    found = find([event])
    assert {item.host for item in found.items} <= {"w2", "cluster"}
    said = json.dumps([item.as_json() for item in found.items])
    assert "\\u001b" not in said and all(isinstance(item.before, str) for item in found.items)


def test_only_ansible_says_for_which_host_a_task_was_done() -> None:
    forged = "[WARNING]: a\nok: [w2 -> cp1]\nchanged: [cp1]\nchanged: [w2]"
    assert read({"changed": True}, shown=forged)["delegated"] == ""
    hidden = read({"censored": "hidden"}, shown="[WARNING]: a\nok: [w2 -> cp1]\nchanged: [w2]")
    assert (hidden["delegated"], hidden["changed"]) == ("", True)
    real = {"changed": True, "_ansible_delegated_vars": {"ansible_host": "10.0.0.1"}}
    assert read(real, shown="changed: [w2 -> cp1(10.0.0.1)]")["delegated"] == "cp1"
    assert read({"censored": "hidden"}, shown="changed: [w2 -> cp1] => (item=x)")["delegated"] == "cp1"


@pytest.mark.parametrize(
    "sides",
    [
        [[f"{number} aaaa bb{letter}b cccc" for number in range(50_000)] for letter in "xy"],
        [[f"{number * step % 50_000} aaaa" for number in range(50_000)] for step in (7, 13)],
        [["x"] * 500_000, ["x"] * 499_999],
    ],
)
def test_a_long_difference_takes_no_long_time(sides: list[list[str]]) -> None:
    began = time.monotonic()
    difference(*sides)
    changes(read({"changed": True, "diff": {"prepared": "", "before": sides[0], "after": sides[1]}}))
    assert time.monotonic() - began < 20


def test_lines_in_another_order_differ() -> None:
    assert difference(["a", "b"], ["b", "a"]) == ("a", "b")
    assert difference(["a", "a", "b"], ["a", "b"]) == ("a", "-")


def test_a_plan_with_any_number_of_names_is_bounded() -> None:
    plan = {"prepared": "", "before": {}, "after": {f"/etc/{number}": "x" for number in range(100_000)}}
    assert len(changes(read({"changed": True, "diff": plan}))) == MOST
    named = [{"subject": "x" * 10_000, "because": ["/a"] * 1_000}] * 1_000
    found = changes(read({"changed": True, "diff": {"prepared": "", "changes": named, "by_subject": False}}))
    assert len(found) == MOST and len(found[0].because) == MOST and len(found[0].subject) < 10_000


def test_of_one_host_no_more_than_a_bound_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "HOST_BYTES", 10_000)
    reader = Reader()
    kept = [read({"changed": True, "diff": {"before": "", "after": "x" * 4_000}}, reader=reader) for _ in range(4)]
    assert ["diff" in each["result"] for each in kept] == [True, True, False, False]
    assert all(find([each]).items for each in kept)
