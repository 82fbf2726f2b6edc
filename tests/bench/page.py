"""Tables of docs/benchmarks.md that programs write, each between markers with its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from inputs import ROOT
from report import table

PAGE = ROOT / "docs" / "benchmarks.md"


def markers(name: str) -> tuple[str, str]:
    return f"<!-- generated {name} -->", f"<!-- /generated {name} -->"


def with_rows(document: str, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the document with rows in the table of this name.

    A row replaces the one with the same first cell; the others stay, and new ones are appended. A table with other
    columns is replaced.

    :raises ValueError: the document has no place for this table.
    """
    begin, end = markers(name)
    if document.count(begin) != 1 or document.count(end) != 1:
        raise ValueError(f"the document needs {begin} and {end} once each")
    before, _, rest = document.partition(begin)
    old, _, after = rest.partition(end)
    lines = [_cells(line) for line in old.strip().splitlines()]
    kept = lines[2:] if lines and lines[0] == list(head) else []
    both = {row[0]: row for row in (*kept, *map(list, rows))}
    return f"{before}{begin}\n{table(head, list(both.values()))}\n{end}{after}"


def write(name: str, head: Sequence[str], rows: Sequence[Sequence[str]], path: Path = PAGE) -> None:
    """Write rows, each with today's date as its last cell, and print them."""
    dated = [[*row, f"{datetime.now(UTC):%Y-%m-%d}"] for row in rows]
    path.write_text(with_rows(path.read_text(encoding="utf-8"), name, [*head, "on"], dated), encoding="utf-8")
    print(table([*head, "on"], dated), flush=True)


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a table, as given to `report.table`."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
