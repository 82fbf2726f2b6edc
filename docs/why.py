#!/usr/bin/env python3
"""Writes the table of the codes of `trainyard why` into docs/troubleshooting.md, from the table of its rules."""

from __future__ import annotations

import re
from pathlib import Path

from trainyard.why.table import ABSENT, TABLE

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "troubleshooting.md"
HEAD = "| code | what it says | remedy |\n| --- | --- | --- |\n"
PLACE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def table() -> str:
    """All codes in the order in which they are looked for; the names of notes in italics, for they are no faults."""
    rows = [
        (f"`{rule.code}`" if rule.fault else f"*{rule.code}*", rule.meaning, rule.remedy) for rule in (*TABLE, ABSENT)
    ]
    return HEAD + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def render(page: str) -> str:
    """The page with its table as it should be.

    :raises ValueError: there is none on it.
    """
    found, count = PLACE.subn(lambda _: table(), page, count=1)
    if not count:
        raise ValueError(f"{TARGET} has no table of codes")
    return found


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
