"""Transcripts of recordings: their letters, and their distance from a recognised text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LETTERS = " 'abcdefghijklmnopqrstuvwxyz"
"""All letters that a transcript may contain; the number of a letter is its index here."""


def numbers(transcript: str) -> list[int]:
    """Return the indices of a transcript's letters in `LETTERS`."""
    return [LETTERS.index(letter) for letter in transcript]


def strange(transcript: str) -> str:
    """Return the characters of a transcript that are not in `LETTERS`, each once."""
    return "".join(dict.fromkeys(letter for letter in transcript if letter not in LETTERS))


def distance(said: Sequence[object], heard: Sequence[object]) -> int:
    """Return the fewest insertions, deletions and replacements between two sequences (Levenshtein 1966)."""
    before = list(range(len(heard) + 1))
    for row, one in enumerate(said, 1):
        now = [row]
        for column, other in enumerate(heard, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (one != other)))
        before = now
    return before[-1]


def error_rates(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the total errors of many sentences per spoken letter (including spaces) and per spoken word.

    A rate exceeds 1 if more was recognised than spoken.

    :param pairs: spoken text, never empty, and recognised text.
    """
    wrong_letters = wrong_words = letters = words = 0
    for said, heard in pairs:
        wrong_letters += distance(said, heard)
        wrong_words += distance(said.split(), heard.split())
        letters += len(said)
        words += len(said.split())
    return {"character_error_rate": wrong_letters / letters, "word_error_rate": wrong_words / words}
