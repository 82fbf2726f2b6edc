"""Tests that each check of the verdict has one row in the table and one in the role's README, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

from trainyard.verify.checks import RUN, SITE

ROW = re.compile(r"^\| ([a-z_]+) \| .* \|$", re.MULTILINE)


def test_the_readme_lists_the_checks_of_the_table(root: Path) -> None:
    text = (root / "roles/verify/README.md").read_text(encoding="utf-8")
    table = text.partition("| check | passes when |")[2].partition("\n\n")[0]
    assert ROW.findall(table) == list(dict.fromkeys(row.name for row in (*SITE, *RUN)))


def test_a_name_is_a_row_once() -> None:
    names = [row.name for row in SITE]
    assert len(names) == len(set(names))
