"""What a chief finds in the folder of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.errors import InputError
from lib.run_folder import AUTO, FRESH, RunFolder

KIND = {"model": "mnist", "hidden_units": 100}


def chief(path: Path, attempt: str = "one") -> RunFolder:
    return RunFolder(path, attempt, print)


def saved(folder: RunFolder, step: int) -> None:
    folder.save_to.mkdir(parents=True, exist_ok=True)
    (folder.save_to / f"ckpt-{step}.index").touch()


def life(
    path: Path, step: int, attempt: str = "one", resume: str = AUTO, target: int = 100, **kind: object
) -> list[str]:
    """A chief comes, saves at a step and goes; returns from which epochs it could go on."""
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
    # One before is kept, as a fallback.
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
    # Its own restart goes on, from its own.
    assert life(tmp_path, 30, attempt="three", resume=FRESH) == ["000003"]


def test_an_attempt_that_finds_its_steps_done_starts_over(tmp_path: Path) -> None:
    life(tmp_path, 100)
    # A chief that was killed between its last checkpoint and its end.
    assert life(tmp_path, 100) == ["000001"]
    assert life(tmp_path, 20, attempt="two") == []
    assert life(tmp_path, 20, attempt="three", target=0) == ["000003"]


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


def test_one_that_was_overtaken_may_not_write(tmp_path: Path) -> None:
    first = chief(tmp_path)
    first.open(KIND, 100, AUTO)
    first.release()
    second = chief(tmp_path)
    assert not first.may_write()
    assert second.may_write()
    assert first.save_to != second.save_to
    second.release()
