"""Tests of letters, the edit distance, and the error rates."""

from __future__ import annotations

import pytest

from speech import manifests


def test_letters_have_numbers():
    assert manifests.numbers("it's a z") == [10, 21, 1, 20, 0, 2, 0, 27]
    assert manifests.strange("Zwei drei: 3!") == "Z:3!"
    assert manifests.strange("don't") == ""


@pytest.mark.parametrize(
    ("said", "heard", "edits"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "", 3),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2),
        ("abcdef", "bcdefa", 2),
        ("ab", "ba", 2),
    ],
)
def test_the_distance_is_the_fewest_edits(said, heard, edits):
    assert manifests.distance(said, heard) == edits == manifests.distance(heard, said)


def test_words_are_compared_whole():
    assert manifests.distance(["red", "boxes"], ["red", "box"]) == 1


def test_rates_are_of_all_letters_and_words_together():
    pairs = [("two red boxes", "two red boxes"), ("one", "on")]
    assert manifests.error_rates(pairs) == {"character_error_rate": 1 / 16, "word_error_rate": 1 / 4}
    assert manifests.error_rates([("a", "a b c")]) == {"character_error_rate": 4.0, "word_error_rate": 2.0}
