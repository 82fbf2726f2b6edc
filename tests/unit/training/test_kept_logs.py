"""Logs that are kept on the controller: they grow, stay in their folder, follow no link, and have a limit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.trainings.kept_logs import KeptLogs, dropped_note

EARLIER, NOW = "20261121T110000Z-0000", "20261121T120000Z-0001"
POD = "mnist-ps-0-0-abcde"


def kept(folder: Path, attempt: str = NOW, limit: int = 10_000) -> KeptLogs:
    return KeptLogs(str(folder), "trainings-mnist", attempt, limit=limit)


def file_of(folder: Path, attempt: str = NOW, pod: str = POD) -> Path:
    return folder / "trainings-mnist" / attempt / f"{pod}.log"


def test_kept_logs_grow_only(tmp_path: Path) -> None:
    logs = kept(tmp_path)
    logs.keep(POD, "ps", "one\ntwo\n")
    logs.keep(POD, "ps", "")
    assert file_of(tmp_path).read_text() == "one\ntwo\n" == logs.text(POD)
    logs.keep(POD, "ps", "three\n", more=True)
    assert logs.tails() == f"--- ps: {POD}\none\ntwo\nthree"
    assert [path.stat().st_mode & 0o777 for path in (file_of(tmp_path).parent, file_of(tmp_path))] == [0o700, 0o600]
    assert logs.paths == [str(file_of(tmp_path))]


def test_nothing_is_kept_without_a_folder() -> None:
    assert (KeptLogs().folder, KeptLogs().text(POD), KeptLogs().paths, KeptLogs().tails()) == ("", "", [], "")


def test_an_error_quotes_no_commands_to_a_terminal(tmp_path: Path) -> None:
    logs = kept(tmp_path)
    logs.keep(POD, "ps", "\x1b]52;c;ZXZpbA==\x07\x1b[2Jred\x1b[31m\r 1/2\r 2/2\nlast\u202e\x00\n")
    assert logs.tails() == f"--- ps: {POD}\n 2/2\nlast"


@pytest.mark.parametrize("what", ["run", "attempt", "file"])
def test_a_link_is_not_followed(tmp_path: Path, what: str) -> None:
    logs, outside = tmp_path / "logs", tmp_path / "outside"
    outside.mkdir()
    (outside / "victim.log").write_text("mine\n")
    link = {"run": file_of(logs).parents[1], "attempt": file_of(logs).parent, "file": file_of(logs)}[what]
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "victim.log" if what == "file" else outside)
    with pytest.raises(TrainyardError, match="cannot be written"):
        kept(logs).keep(POD, "ps", "text\n")
    assert [path.name for path in outside.iterdir()] == ["victim.log"]
    assert (outside / "victim.log").read_text() == "mine\n"
    assert kept(logs).text(POD) == ""


def test_a_run_has_a_limit_and_the_log_says_that_older_lines_are_gone(tmp_path: Path) -> None:
    kept(tmp_path, EARLIER).keep(POD, "ps", "early\n" * 500)
    logs = kept(tmp_path)
    for first in range(0, 10_000, 100):
        text = "".join(f"{number}\n" for number in range(first, first + 100))
        logs.keep(POD, "ps", text, more=first > 0)
    lines = file_of(tmp_path).read_text().splitlines(keepends=True)
    assert lines[0] == dropped_note(10_000)
    first = int(lines[1])
    assert [int(line) for line in lines[1:]] == list(range(first, 10_000)), "the last lines, whole and in order"
    assert file_of(tmp_path, EARLIER).read_text() == dropped_note(10_000)
    assert 4_000 < sum(path.stat().st_size for path in tmp_path.rglob("*.log")) <= 10_000


def test_the_longest_log_of_a_run_gives_way(tmp_path: Path) -> None:
    logs = kept(tmp_path)
    logs.keep("mnist-chief-0-0-aaaaa", "chief", "short\n")
    logs.keep(POD, "worker", "x" * 30_000)
    assert file_of(tmp_path, pod="mnist-chief-0-0-aaaaa").read_text() == "short\n"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.log")) <= 10_000


def test_the_longest_name_of_a_pod_has_a_file(tmp_path: Path) -> None:
    logs = kept(tmp_path)
    logs.keep("a" * 253, "ps", "x\n")
    assert logs.text("a" * 253) == "x\n"


def test_another_follower_adds_only_lines_that_are_not_there(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(300))
    kept(tmp_path).keep(POD, "ps", text)
    again, longer = kept(tmp_path), f"{text}new\n"
    for first in range(0, len(longer), 700):
        again.keep(POD, "ps", longer[first : first + 700], more=first > 0)
    assert file_of(tmp_path).read_text() == longer


def test_a_made_up_attempt_takes_no_room_of_a_later_one(tmp_path: Path) -> None:
    made_up, real = kept(tmp_path, "unknown"), kept(tmp_path)
    made_up.keep(POD, "ps", "forged\n" * 1_000)
    os.utime(file_of(tmp_path, "unknown"), (1, 1))
    real.keep(POD, "ps", "real\n" * 1_000)
    assert file_of(tmp_path, "unknown").read_text() == dropped_note(10_000)
    assert file_of(tmp_path).read_text() == "real\n" * 1_000
