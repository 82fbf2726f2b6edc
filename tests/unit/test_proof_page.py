"""The table of docs/reference/proof.md: a part has one line, the last, and an age."""

from __future__ import annotations

from datetime import date

import pytest

from tests.lab import proof_page
from tests.lab.proof_page import ages, with_row

# Another table of six columns, and one that names the parts, too.
OTHERS = "| what | a | b | c | d | e |\n| --- | --- | --- | --- | --- | --- |\n| x | a | b | c | d | e |\n"
OTHERS += "\n| part | what |\n| --- | --- |\n| bench | y |\n"
HEAD = (
    f"# Proof\n\n{OTHERS}\n| part | date | commit | machine | time | steps |\n| --- | --- | --- | --- | --- | --- |\n"
)


OLD = "| bench | 2026-11-01 | 0123abcd | 2 cores | 9 s |  |\n"
NEW = "| bench | 2026-11-27 | 89abcdef | 2 cores | 8 s |  |"
ALONE = "| alone | 2026-11-27 | 89abcdef | 2 cores | 8 s |  |"


@pytest.mark.parametrize(
    ("rows", "part", "row", "expected"),
    [
        ("", "bench", NEW, f"{NEW}\n"),
        (OLD, "bench", NEW, f"{NEW}\n"),
        (OLD, "alone", ALONE, f"{ALONE}\n{OLD}"),
    ],
)
def test_a_part_has_one_line(rows: str, part: str, row: str, expected: str) -> None:
    assert with_row(HEAD + rows, part, row) == HEAD + expected


def test_the_oldest_part_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that never passed is older than any, and a commit that is not here has no count."""
    counts = {"0123abcd": 650, "89abcdef": 3}
    monkeypatch.setattr(proof_page, "_commits_since", counts.get)
    page = HEAD + ALONE + "\n" + OLD + "| lost | 2026-11-02 | 77777777 | 2 cores | 1 s |  |\n"
    found = ages(page, ["alone", "bench", "lost", "new"], date(2026, 11, 28))
    assert [(age.part, age.commits, age.days) for age in found] == [
        ("new", None, None),
        ("bench", 650, 27),
        ("alone", 3, 1),
        ("lost", None, 26),
    ]
    assert str(found[0]) == "new              never"
    assert str(found[1]) == "bench                650 commits   27 days"
    assert "unknown commits" in str(found[3])
