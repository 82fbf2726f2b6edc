"""The table of docs/reference/proof.md: a part has one line, the last."""

from __future__ import annotations

import pytest

from tests.lab.test_proof import with_row

# Another table of five columns, and one that names the parts, too.
OTHERS = "| what | a | b | c | d |\n| --- | --- | --- | --- | --- |\n| x | a | b | c | d |\n"
OTHERS += "\n| part | what |\n| --- | --- |\n| bench | y |\n"
HEAD = f"# Proof\n\n{OTHERS}\n| part | date | machine | time | steps |\n| --- | --- | --- | --- | --- |\n"


@pytest.mark.parametrize(
    ("rows", "part", "expected"),
    [
        ("", "bench", "| bench | new |\n"),
        ("| bench | old |\n", "bench", "| bench | new |\n"),
        ("| bench | old |\n", "alone", "| alone | new |\n| bench | old |\n"),
    ],
)
def test_a_part_has_one_line(rows: str, part: str, expected: str) -> None:
    assert with_row(HEAD + rows, part, f"| {part} | new |") == HEAD + expected
