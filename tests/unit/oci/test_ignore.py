"""What `.trainignore` leaves out, one pattern a row."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.oci import code_folder as ignore


def rules(folder: Path, *lines: str) -> ignore.Rules:
    (folder / ignore.FILE).write_text("\n".join(lines))
    return ignore.read_ignore(folder)


@pytest.mark.parametrize(
    ("pattern", "out", "stays"),
    [
        ("*.log", ["a.log", "sub/a.log"], ["a.logs", "log"]),
        ("run?.py", ["run1.py"], ["run.py", "run12.py"]),
        ("[ab].py", ["a.py", "x/b.py"], ["c.py"]),
        ("data", ["data", "sub/data", "data/train.bin"], ["database"]),
        ("data/", ["data/train.bin", "sub/data/train.bin"], ["data", "sub/data"]),
        ("/data", ["data", "data/train.bin"], ["sub/data"]),
        ("sub/data", ["sub/data", "sub/data/x"], ["data", "more/sub/data"]),
        ("/notes/*.txt", ["notes/a.txt"], ["notes/deep/a.txt", "a.txt"]),
        ("/out/", ["out/a"], ["out", "sub/out/a"]),
        ("*.tmp   ", ["a.tmp"], ["tmp"]),
        ("# a.py", [], ["a.py", "# a.py"]),
        ("", [], ["a.py"]),
        ("**/data", ["data", "a/b/data", "data/x"], ["database"]),
        ("data/**/*.bin", ["data/a.bin", "data/b/c.bin"], ["a.bin", "data/a.txt"]),
        ("a\\*b", ["a*b"], ["aab"]),
        ("\\#notes", ["#notes"], ["notes"]),
        ("[!a].py", ["b.py"], ["a.py"]),
    ],
)
def test_patterns(tmp_path, pattern: str, out: list[str], stays: list[str]) -> None:
    found = rules(tmp_path, pattern)
    assert [path for path in out if not found.leaves_out(PurePosixPath(path))] == []
    assert [path for path in stays if found.leaves_out(PurePosixPath(path))] == []


def test_a_pattern_for_folders_holds_for_the_folder_itself(tmp_path) -> None:
    found = rules(tmp_path, "data/")
    assert found.leaves_out(PurePosixPath("sub/data"), is_folder=True)


@pytest.mark.parametrize(
    "path", [".git/HEAD", "sub/.git", "a/__pycache__/b.pyc", "a/.ipynb_checkpoints/b.ipynb", ".trainignore"]
)
def test_some_names_never_belong_to_an_image(tmp_path, path: str) -> None:
    assert ignore.read_ignore(tmp_path).leaves_out(PurePosixPath(path))


@pytest.mark.parametrize("line", ["!", "!!a", "!../a", "/", "./a", "a//b", "../data", "[ab", "a\\"])
def test_what_it_does_not_know_is_refused_with_its_line(tmp_path, line: str) -> None:
    with pytest.raises(TrainyardError, match=r"\.trainignore, line 2: .* is not a pattern"):
        rules(tmp_path, "# fine", line)


def test_a_later_line_includes_a_file_again_but_not_below_an_excluded_folder(tmp_path) -> None:
    found = rules(tmp_path, "*.log", "!keep.log", "data/", "!data/keep.log")
    assert [found.leaves_out(PurePosixPath(name)) for name in ("a.log", "keep.log", "data/keep.log")] == [1, 0, 1]


def test_a_line_that_includes_a_file_allows_a_secret(tmp_path) -> None:
    found = rules(tmp_path, "!test.pem", "!keys/")
    assert found.allows(PurePosixPath("sub/test.pem")) and found.allows(PurePosixPath("keys/a.key"))
    assert found.allows(PurePosixPath("keys"), is_folder=True) and not found.allows(PurePosixPath("other.pem"))


def test_a_file_that_is_no_text_is_refused(tmp_path) -> None:
    (tmp_path / ignore.FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(TrainyardError, match=r"\.trainignore cannot be read"):
        ignore.read_ignore(tmp_path)
