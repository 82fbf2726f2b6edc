#!/usr/bin/env python3
"""Write the codes of `trainyard why` from its table of rules into docs/tasks/troubleshooting.md."""

from __future__ import annotations

import re
from pathlib import Path

from trainyard.why.table import ABSENT, TABLE

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "tasks" / "troubleshooting.md"
HEAD = "| code | meaning | remedy |\n| --- | --- | --- |\n"
PLACE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def table() -> str:
    """Return the table of all codes in evaluation order. Notes are in italics, because they are no faults."""
    rows = [
        (f"`{rule.code}`" if rule.fault else f"*{rule.code}*", rule.meaning, rule.remedy) for rule in (*TABLE, ABSENT)
    ]
    return HEAD + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def render(page: str) -> str:
    """Return the page with its table replaced.

    :raises ValueError: the page has no table.
    """
    found, count = PLACE.subn(lambda _: table(), page, count=1)
    if not count:
        raise ValueError(f"{TARGET} has no table of codes")
    return found


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
