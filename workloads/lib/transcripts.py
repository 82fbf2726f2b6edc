"""What is said in a recording: its letters, and how far another reading of it is off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LETTERS = " 'abcdefghijklmnopqrstuvwxyz"
"""All that a transcript may have; each stands for its place here."""


def numbers(transcript: str) -> list[int]:
    """The places of a transcript's letters in `LETTERS`."""
    return [LETTERS.index(letter) for letter in transcript]


def strange(transcript: str) -> str:
    """What a transcript has beside `LETTERS`, each once."""
    return "".join(dict.fromkeys(letter for letter in transcript if letter not in LETTERS))


def distance(said: Sequence[object], heard: Sequence[object]) -> int:
    """The fewest insertions, deletions and replacements that make one of the other (Levenshtein 1966)."""
    before = list(range(len(heard) + 1))
    for row, one in enumerate(said, 1):
        now = [row]
        for column, other in enumerate(heard, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (one != other)))
        before = now
    return before[-1]


def error_rates(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Errors of many sentences in all, per letter (spaces count) and per word that was said; above 1 where more was
    heard than said.

    :param pairs: what was said, never nothing, and what was heard.
    """
    wrong_letters = wrong_words = letters = words = 0
    for said, heard in pairs:
        wrong_letters += distance(said, heard)
        wrong_words += distance(said.split(), heard.split())
        letters += len(said)
        words += len(said.split())
    return {"character_error_rate": wrong_letters / letters, "word_error_rate": wrong_words / words}
