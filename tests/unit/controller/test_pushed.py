"""What a checkout sends to the repository of a schedule, with git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from trainyard.controller import bare_repository as controller
from trainyard.controller.bare_repository import LAST_GOOD, Pushed, make_plan
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.schedule import repository


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **names, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", "-C", str(folder), *words], env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def sent(folder: Path, *refs: str) -> Path:
    git(folder, "bundle", "create", "--quiet", str(folder.parent / "bundle"), *refs)
    return folder.parent / "bundle"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    # Not the branch that the schedule follows: its HEAD is what is sent.
    git(folder, "init", "--quiet", "--initial-branch=mine")
    (folder / "file").write_text("1", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "x")
    return folder


@pytest.fixture
def pushed(checkout: Path, tmp_path: Path) -> Pushed:
    commit = git(checkout, "rev-parse", "HEAD")
    return Pushed(tmp_path / "bare.git", tmp_path / "installed", "refs/heads/main", commit, sent(checkout, "HEAD"))


def test_first_push_again_and_the_next(checkout: Path, pushed: Pushed) -> None:
    first = pushed.commit[:12]
    assert [step.what for step in make_plan(pushed).steps] == [
        f"Create the repository {pushed.path}",
        f"Push {first} to refs/heads/main",
        f"Check {first} out to {pushed.checkout}",
        f"Make {first} the last good revision",
    ]
    make_plan(pushed).execute()
    assert make_plan(pushed).steps == ()
    assert (pushed.checkout / "file").read_text(encoding="utf-8") == "1"
    assert git(pushed.path, "rev-parse", LAST_GOOD) == pushed.commit

    (checkout / "file").write_text("2", encoding="utf-8")
    # Written anew, as after a rebase.
    git(checkout, "commit", "--quiet", "--amend", "-am", "y")
    commit = git(checkout, "rev-parse", "HEAD")
    after = replace(pushed, commit=commit, bundle=sent(checkout, "HEAD"))
    assert make_plan(after).steps[0].what == f"Push {commit[:12]} to refs/heads/main (was {first})"
    make_plan(after).execute()
    assert make_plan(after).steps == ()
    assert (pushed.checkout / "file").read_text(encoding="utf-8") == "2"


def test_a_file_that_somebody_changed_is_put_back(pushed: Pushed) -> None:
    make_plan(pushed).execute()
    (pushed.checkout / "file").write_text("evil", encoding="utf-8")
    assert [step.what.split()[0] for step in make_plan(pushed).steps] == ["Check"]
    make_plan(pushed).execute()
    assert (pushed.checkout / "file").read_text(encoding="utf-8") == "1"


def test_a_second_set_up_goes_back_to_its_own_revision(checkout: Path, pushed: Pushed) -> None:
    """A run has taken another one since, or the first set-up was killed before it came so far."""
    make_plan(pushed).execute()
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "y")
    git(pushed.path, "fetch", "--quiet", str(checkout), f"+HEAD:{LAST_GOOD}")
    other = git(pushed.path, "rev-parse", LAST_GOOD)[:12]
    told = f"Make {pushed.commit[:12]} the last good revision"
    assert [step.what for step in make_plan(pushed).steps] == [f"{told} (was {other})"]
    git(pushed.path, "update-ref", "-d", LAST_GOOD)
    assert [step.what for step in make_plan(pushed).steps] == [told]
    make_plan(pushed).execute()
    assert make_plan(pushed).steps == () and git(pushed.path, "rev-parse", LAST_GOOD) == pushed.commit


def test_a_tag_stays_a_tag(checkout: Path, pushed: Pushed) -> None:
    git(checkout, "tag", "-a", "-m", "x", "v1")
    tagged = replace(pushed, ref="refs/tags/v1", bundle=sent(checkout, "refs/tags/v1"))
    make_plan(tagged).execute()
    assert make_plan(tagged).steps == ()
    assert git(pushed.path, "cat-file", "-t", "refs/tags/v1") == "tag"


def test_commits_that_were_not_sent(pushed: Pushed) -> None:
    with pytest.raises(TrainyardError, match="were not sent"):
        make_plan(replace(pushed, bundle=None)).execute()
    with pytest.raises(TrainyardError, match="after the push, not at 0000"):
        make_plan(replace(pushed, commit="0" * 40)).execute()


def test_both_sides_mean_the_same_ref() -> None:
    assert repository.LAST_GOOD == LAST_GOOD


def test_whoever_pushes_waits_for_a_start_of_the_schedule(pushed: Pushed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes what killed gits have left locked, and must not take that of a living one for it."""
    make_plan(pushed).execute()
    monkeypatch.setattr(controller, "LOCK_TIMEOUT", 0.1)
    shutil.rmtree(pushed.checkout)
    started = repository.Repository(pushed.path, pushed.path.parent)
    with started.locked(), pytest.raises(WaitError, match="the lock of"):
        make_plan(pushed).execute()
    make_plan(pushed).execute()
    assert (pushed.checkout / "file").is_file()
