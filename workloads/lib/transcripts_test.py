"""Tests of letters, the edit distance, and the error rates."""

import pytest

from lib import transcripts


def test_letters_have_numbers():
    assert transcripts.numbers("it's a z") == [10, 21, 1, 20, 0, 2, 0, 27]
    assert transcripts.strange("Zwei drei: 3!") == "Z:3!"
    assert transcripts.strange("don't") == ""


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
    assert transcripts.distance(said, heard) == edits == transcripts.distance(heard, said)


def test_words_are_compared_whole():
    assert transcripts.distance(["red", "boxes"], ["red", "box"]) == 1


def test_rates_are_of_all_letters_and_words_together():
    pairs = [("two red boxes", "two red boxes"), ("one", "on")]
    assert transcripts.error_rates(pairs) == {"character_error_rate": 1 / 16, "word_error_rate": 1 / 4}
    assert transcripts.error_rates([("a", "a b c")]) == {"character_error_rate": 4.0, "word_error_rate": 2.0}
