"""Tests of the digest of a data set."""

from __future__ import annotations

import pytest

from engine.errors import InputError
from engine.loop.state import BLOCK_BYTES, digest

SIZE = 10 * BLOCK_BYTES


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "set"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.mark.parametrize("at", [0, BLOCK_BYTES - 1, SIZE // 2, SIZE - BLOCK_BYTES, SIZE - 1])
def test_one_byte_makes_another_set(file, at):
    before = digest([file])
    content = bytearray(SIZE)
    content[at] = 1
    file.write_bytes(content)
    assert digest([file]) != before


def test_names_do_not_count_but_sizes_and_order_do(tmp_path, file):
    small = tmp_path / "small"
    small.write_bytes(b"123")
    before = digest([file, small])
    assert digest([file.rename(tmp_path / "moved"), small]) == before
    assert digest([small, tmp_path / "moved"]) != before
    # The same bytes overall, split differently.
    small.write_bytes(b"12")
    with (tmp_path / "moved").open("ab") as stream:
        stream.write(b"3")
    assert digest([tmp_path / "moved", small]) != before


def test_little_is_read_of_large_files(tmp_path):
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(2**40)
    assert len(digest([tmp_path / "large"])) == 16


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"/gone cannot be read \(No such file or directory\)"):
        digest([tmp_path / "gone"])
