"""Tests of the loss and the decoding against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from speech import ctc
from speech.manifests import LETTERS

tf = pytest.importorskip("tensorflow")


def scores(*rows):
    """Return logits in which each step is certain of one letter; `-` is the blank."""
    found = np.full([len(rows), max(map(len, rows)), ctc.CLASSES], -20.0, np.float32)
    for example, row in enumerate(rows):
        for step, letter in enumerate(row):
            found[example, step, len(LETTERS) if letter == "-" else LETTERS.index(letter)] = 20.0
    return found


def test_repeats_are_one_letter_and_blanks_none():
    rows = ["hhe-l-llo-", "-----", "a b  b-bb", "'zz"]
    heard = ctc.texts(scores(*rows), np.int32([len(row) for row in rows])).numpy()
    assert [text.decode() for text in heard] == ["hello", "", "a b bb", "'z"]


def test_steps_behind_the_end_do_not_count():
    heard = ctc.texts(scores("abc", "abc"), np.int32([3, 1])).numpy()
    assert list(heard) == [b"abc", b"a"]


def test_a_batch_in_which_nothing_is_heard():
    assert list(ctc.texts(scores("--", "--"), np.int32([2, 2])).numpy()) == [b"", b""]


def test_the_loss_is_the_probability_of_all_ways_to_say_it():
    letters, lengths = np.int32([[2, 0], [2, 2]]), np.int32([1, 2])
    even = np.zeros([2, 3, ctc.CLASSES], np.float32)
    found = ctc.losses(even, np.int32([2, 3]), letters, lengths).numpy()
    # "a" in two steps: aa, a-, -a; "aa" in three: a-a alone.
    assert found == pytest.approx([-math.log(3 / 29**2), -math.log(1 / 29**3)], rel=1e-5)
    assert ctc.losses(scores("a-a"), np.int32([3]), letters[1:], lengths[1:]).numpy() == pytest.approx([0], abs=1e-3)


def test_how_many_steps_a_transcript_needs():
    assert [ctc.steps_needed(text) for text in ("", "abc", "hello", "aaa")] == [0, 3, 6, 5]
