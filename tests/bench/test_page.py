"""Tests of the tables that programs write into docs/benchmarks.md."""

from __future__ import annotations

import page
import pytest

HEAD = ["what", "value"]
EMPTY = "# A\n\n<!-- generated x -->\n<!-- /generated x -->\n\nkept | too\n"


def test_a_row_takes_the_place_of_its_predecessor_and_the_others_stay() -> None:
    one = page.with_rows(EMPTY, "x", HEAD, [["a", "1"], ["b | c", "2"]])
    two = page.with_rows(one, "x", HEAD, [["b | c", "3"], ["d", "4"]])
    table = "| what | value |\n| --- | --- |\n| a | 1 |\n| b \\| c | 3 |\n| d | 4 |"
    assert two == EMPTY.replace("-->\n<!-- /", f"-->\n{table}\n<!-- /")


def test_a_table_with_other_columns_is_written_anew() -> None:
    one = page.with_rows(EMPTY, "x", ["what", "was"], [["a", "1"]])
    assert "| a |" not in page.with_rows(one, "x", HEAD, [["b", "2"]])


def test_a_document_without_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="generated y"):
        page.with_rows(EMPTY, "y", HEAD, [["a", "1"]])


@pytest.mark.parametrize("name", ["commits", "drills", "wide", "bare", "catalogue"])
def test_the_page_has_a_place_for_every_table(name: str) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert [text.count(marker) for marker in page.markers(name)] == [1, 1]
