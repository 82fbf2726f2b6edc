"""Tests that docs/tasks/troubleshooting.md has the codes of the rules, and that trainings emit their events."""

from __future__ import annotations

import re

from checkout import ROOT, load

from trainyard.why.table import ABSENT, TABLE


def test_the_table_of_codes_is_current() -> None:
    page = load(ROOT / "tools" / "why.py")
    text = page.TARGET.read_text(encoding="utf-8")
    assert text == page.render(text), "run `python3 tools/why.py`"
    assert all(f"\n| `{rule.code}` |" in text for rule in (*TABLE, ABSENT) if rule.fault)


def test_trainings_say_when_they_begin_what_takes_time() -> None:
    """Otherwise the silence that follows looks like a stall."""
    said = {
        event
        for path in (ROOT / "workloads" / "engine").rglob("*.py")
        for event in re.findall(r'emit\("(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert {"step", "saving", "evaluating", "connected", "start", "peer"} <= said
