#!/usr/bin/env python3
"""Write the codes of `trainyard why`, and the errors that it knows, into docs/tasks/troubleshooting.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainyard.why.known_errors import TABLE as KNOWN
from trainyard.why.table import ABSENT, TABLE

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "tasks" / "troubleshooting.md"
HEAD = "| code | meaning | remedy |\n| --- | --- | --- |\n"
PLACE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


ERRORS = "| the program | remedy | the text is from |\n| --- | --- | --- |\n"
ERRORS_PLACE = re.compile(re.escape(ERRORS) + r"(?:\|.*\n)*")


def errors() -> str:
    """Return the table of known errors in the order in which they are tried."""
    rows = [(row.cause.replace("{name}", "NAME"), row.remedy, row.source) for row in KNOWN]
    return ERRORS + _rows(rows)


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def table() -> str:
    """Return the table of all codes in evaluation order. Notes are in italics, because they are no faults."""
    rows = [
        (f"`{rule.code}`" if rule.fault else f"*{rule.code}*", rule.meaning, rule.remedy) for rule in (*TABLE, ABSENT)
    ]
    return HEAD + _rows(rows)


def render(page: str) -> str:
    """Return the page with its tables replaced.

    :raises ValueError: the page lacks a table.
    """
    for place, made in ((PLACE, table), (ERRORS_PLACE, errors)):
        page, count = place.subn(lambda _, made=made: made(), page, count=1)  # type: ignore[misc]
        if not count:
            raise ValueError(f"{TARGET} lacks a table")
    return page


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
