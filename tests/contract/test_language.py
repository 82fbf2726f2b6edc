"""Plain English: words that hide the actor or the act are counted, and their number only falls."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

WORDS = (
    "told",
    "nobody",
    "somebody",
    "anew",
    "whoever",
    "stands",
    "goes on",
    "mend",
    "stranger",
    "besides",
    "of which",
)
MOST = 47
"""Occurrences today. Lower it with every change that removes some; CONTRIBUTING.md lists the words to use."""
LISTED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
ENDINGS = (".py", ".yml", ".md", ".j2")
LEFT_OUT = ("tests/", "molecule/", "CHANGELOG.md")


def tracked() -> list[str]:
    """Paths of the files that belong to the project."""
    names = [f"*{ending}" for ending in ENDINGS]
    run = subprocess.run(["git", "ls-files", "-z", *names], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in run.stdout.split("\0") if path and not path.startswith(LEFT_OUT)]


def listed(text: str) -> list[str]:
    return LISTED.findall(text)


def test_the_number_of_listed_words_only_falls() -> None:
    found = {path: len(listed(Path(ROOT, path).read_text(encoding="utf-8"))) for path in tracked()}
    total = sum(found.values())
    worst = sorted(((count, path) for path, count in found.items() if count), reverse=True)[:10]
    assert total <= MOST, f"{total} listed words, at most {MOST}. Most are in {worst}."
    assert total == MOST, f"{total} listed words are left. Set MOST to {total}."


@pytest.mark.parametrize(
    ("text", "count"),
    [("It was Told, and goes on.", 2), ("amend, strangers, stranger_blocked, goes one", 0), ("of which\nnobody", 2)],
)
def test_whole_words_are_counted(text: str, count: int) -> None:
    assert len(listed(text)) == count
