"""Tests of the folder of a run, as a chief finds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import InputError, StalledError, VolumeError
from engine.run.run_folder import AUTO, FRESH, Attempt, Checkpoints, RunFolder

KIND = {"model": "mnist", "hidden_units": 100}


def chief(path: Path, attempt: str = "one") -> RunFolder:
    return RunFolder(path, attempt, print)


def saved(folder: RunFolder, step: int) -> None:
    folder.save_to.mkdir(parents=True, exist_ok=True)
    (folder.save_to / f"ckpt-{step}.index").touch()


def life(
    path: Path, step: int, attempt: str = "one", resume: str = AUTO, target: int = 100, **kind: object
) -> list[str]:
    """Simulate a chief that starts, saves at a step and ends; return the epochs that it could continue from."""
    folder = chief(path, attempt)
    try:
        found = [each.name for each in folder.open({**KIND, **kind}, target, resume)]
        saved(folder, step)
        folder.prune()
    finally:
        folder.release()
    return found


def test_a_restart_goes_on_from_the_newest_epoch(tmp_path: Path) -> None:
    assert life(tmp_path, 20) == []
    assert life(tmp_path, 40) == ["000001"]
    assert life(tmp_path, 60) == ["000002", "000001"]
    # One earlier checkpoint is kept as a fallback.
    assert life(tmp_path, 80) == ["000003", "000002"]


def test_a_chief_that_saved_nothing_hides_nothing(tmp_path: Path) -> None:
    life(tmp_path, 20)
    empty = chief(tmp_path)
    empty.open(KIND, 100, AUTO)
    empty.save_to.mkdir()
    empty.release()
    assert life(tmp_path, 40) == ["000001"]


def test_another_attempt_goes_on_unless_it_shall_not(tmp_path: Path) -> None:
    life(tmp_path, 20)
    assert life(tmp_path, 40, attempt="two") == ["000001"]
    assert life(tmp_path, 10, attempt="three", resume=FRESH) == []
    # Its own restart continues from its own checkpoint.
    assert life(tmp_path, 30, attempt="three", resume=FRESH) == ["000003"]


def test_an_attempt_that_finds_its_steps_done_starts_over(tmp_path: Path) -> None:
    life(tmp_path, 100)
    # A chief that was killed between its last checkpoint and its end.
    assert life(tmp_path, 100) == ["000001"]
    Attempt(tmp_path, "one").finish()
    assert life(tmp_path, 20, attempt="two") == []
    assert life(tmp_path, 20, attempt="three", target=0) == ["000003"]


def test_an_attempt_finds_the_verdict_that_one_before_did_not_reach(tmp_path: Path) -> None:
    """Test an attempt that was stopped, or whose volume was full, when only the evaluation and the export were left."""
    life(tmp_path, 100)
    assert life(tmp_path, 100, attempt="two") == ["000001"]
    Attempt(tmp_path, "two").finish()
    assert life(tmp_path, 20, attempt="three") == []


def test_more_steps_go_on_where_the_run_ended(tmp_path: Path) -> None:
    life(tmp_path, 100)
    assert life(tmp_path, 200, attempt="two", target=200) == ["000001"]


def test_checkpoints_of_another_model_are_refused_by_name(tmp_path: Path) -> None:
    life(tmp_path, 20)
    with pytest.raises(InputError, match="hidden_units 100, and 50"):
        life(tmp_path, 40, attempt="two", hidden_units=50)
    # And still there.
    assert life(tmp_path, 40, attempt="three") == ["000001"]
    assert life(tmp_path, 10, attempt="four", resume=FRESH, hidden_units=50) == []


def test_what_was_not_noted_when_the_run_began_is_not_compared_until_it_is(tmp_path: Path) -> None:
    life(tmp_path, 20)
    assert life(tmp_path, 40, attempt="two", data="1f") == ["000001"]
    with pytest.raises(InputError, match="data 1f, and 2e"):
        life(tmp_path, 60, attempt="three", data="2e")
    with pytest.raises(InputError, match="data 1f, and None"):
        life(tmp_path, 60, attempt="three")


def test_one_that_was_overtaken_may_not_write(tmp_path: Path) -> None:
    first = chief(tmp_path)
    first.open(KIND, 100, AUTO)
    first.release()
    second = chief(tmp_path)
    with pytest.raises(StalledError, match="Another chief"):
        first.require_held()
    second.require_held()
    assert first.save_to != second.save_to
    second.release()


def test_one_that_was_overtaken_does_not_change_what_the_run_is(tmp_path: Path) -> None:
    first = chief(tmp_path)
    first.release()
    second = chief(tmp_path, "two")
    second.open(KIND, 100, AUTO)
    before = (tmp_path / "run.json").read_text()
    with pytest.raises(StalledError, match="Another chief"):
        first.open(KIND, 100, AUTO)
    assert (tmp_path / "run.json").read_text() == before
    second.release()


def test_what_the_run_is_reaches_the_disk_before_it_replaces_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda number: (done.append(os.readlink(f"/proc/self/fd/{number}")), fsync(number))
    )
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("replace"), replace(old, new)))
    life(tmp_path, 20)
    assert done == [str(tmp_path / "run.part"), "replace", str(tmp_path)]


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 64, b"\xff", b"[]", b"{}", b'{"attempt": "one", "since": "x", "kind": {}}'],
    ids=["empty", "zeros", "no text", "no object", "no fields", "no epoch"],
)
def test_a_damaged_run_file_is_named_and_nothing_is_guessed(tmp_path: Path, content: bytes) -> None:
    life(tmp_path, 20)
    file = tmp_path / "run.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=rf"{file} is damaged .*workloads_state=restarted"):
        life(tmp_path, 40)
    assert file.read_bytes() == content
    # Both remedies that the error names.
    file.unlink()
    assert life(tmp_path, 40, hidden_units=50) == ["000001"]
    file.write_bytes(content)
    assert life(tmp_path, 10, attempt="two", resume=FRESH) == []


def test_broken_folders_do_not_cost_the_fallback(tmp_path: Path) -> None:
    def broken() -> None:
        folder = chief(tmp_path)
        folder.open(KIND, 100, AUTO)
        folder.save_to.mkdir(parents=True)
        (folder.save_to / "ckpt-30.data-00000-of-00001").touch()
        folder.release()

    broken()
    life(tmp_path, 20)
    broken()
    life(tmp_path, 40)
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == ["000002", "000003", "000004"]
    life(tmp_path, 60)
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == ["000004", "000005"]


def test_a_chief_removes_nothing_of_one_after_it(tmp_path: Path) -> None:
    first = chief(tmp_path)
    saved(first, 20)
    first.release()
    second = chief(tmp_path)
    saved(second, 20)
    second.release()
    third = chief(tmp_path)
    saved(third, 40)
    first.prune()
    assert len(list((tmp_path / "checkpoints").iterdir())) == 3
    third.release()


def test_a_run_file_that_cannot_be_read_is_no_damaged_one(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(VolumeError, match=r"run\.json cannot be read \(Is a directory\)"):
        life(tmp_path, 20)


@pytest.mark.parametrize("place", ["run", "run/lease"])
def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    with pytest.raises(InputError, match=f"/run cannot be written .* Make it writable for user {os.getuid()}"):
        chief(tmp_path / "run")


def test_a_reader_finds_the_checkpoints_of_its_attempt(tmp_path: Path) -> None:
    reader = Checkpoints(tmp_path, Attempt(tmp_path, "one"))
    assert (reader.since(), reader.newest()) == (None, None)
    life(tmp_path, 20)
    life(tmp_path, 60)
    life(tmp_path, 40)  # It could not read the newest checkpoint, and fell back.
    assert (reader.since(), reader.newest()) == (1, (40, tmp_path / "checkpoints/000003/ckpt-40"))
    life(tmp_path, 10, attempt="two", resume=FRESH)
    assert (reader.since(), reader.newest()) == (None, None)
    other = Checkpoints(tmp_path, Attempt(tmp_path, "two"))
    assert (other.since(), other.newest()) == (4, (10, tmp_path / "checkpoints/000004/ckpt-10"))
    (tmp_path / "run.json").write_text("{")
    assert other.newest() is None


def test_chief_and_evaluator_see_each_other(tmp_path: Path) -> None:
    seen = Attempt(tmp_path, "one")
    first = chief(tmp_path)
    assert (first.attempt.has_evaluator, seen.ended) == (False, False)
    seen.announce_evaluator()
    first.attempt.finish()
    assert (first.attempt.has_evaluator, seen.ended) == (True, True)
    seen.withdraw_evaluator()
    assert not first.attempt.has_evaluator
    seen.announce_evaluator()
    assert not Attempt(tmp_path, "two").has_evaluator
    first.release()
    again = chief(tmp_path)
    assert (again.attempt.has_evaluator, seen.ended) == (True, False)
    again.release()
