"""The console's views of records, receipts, events and boards: JSON for any text that a user of the cluster chose."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hostile.values import EXAMPLES, JSON, TEXTS, documents
from trainyard.console.views import curves, events, receipts, words

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
RECEIPT = ("verdict", "checks", "warnings", "nodes", "trainings", "versions", "measured", "written_at", "wall_seconds")
EVENT = ("type", "reason", "message", "count", "lastTimestamp", "eventTime", "series", "note")


def is_json(made: Any) -> None:
    json.dumps(made, allow_nan=False)


@EXAMPLES
@given(st.one_of(TEXTS, documents(*RECEIPT).map(json.dumps)), TEXTS)
def test_receipts(receipt: str, created: str) -> None:
    found = {"metadata": {"name": "r", "creationTimestamp": created}, "data": {receipts.KEY: receipt}}
    receipts.build([found], {}, NOW), receipts.build_one(found, {"name": "r"}, NOW)


@EXAMPLES
@given(st.dictionaries(st.sampled_from(EVENT), st.one_of(TEXTS, st.integers(0, 2**31)), max_size=4), TEXTS)
def test_events(event: dict[str, Any], name: str) -> None:
    about = {"kind": "Pod", "name": name, "namespace": "t"}
    is_json(
        events.events([{"metadata": {"name": "e", "creationTimestamp": name}, "involvedObject": about, **event}], NOW)
    )


@EXAMPLES
@given(JSON)
def test_boards_and_words(value: Any) -> None:
    is_json(curves.of_board(value))
    words.moment(value), words.ago(value, NOW), words.clock(value)
