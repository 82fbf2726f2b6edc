"""Revisions from real git repositories, with real signatures: what is taken, what is refused, what stays on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.reprovision.origins import Origin, bare
from trainyard.core.errors import TrainyardError
from trainyard.drift.report import Revision, of_checkout
from trainyard.schedule.repository import Repository, Wanted


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return bare(tmp_path)


def test_a_branch_of_signed_commits(origin: Origin, repository: Repository) -> None:
    commit = origin.commit("v1.36.3", "owner")
    assert repository.take(origin.wanted()) == Revision(commit, "main", True)
    assert repository.take(origin.wanted(signed=False)) == Revision(commit, "main", None)


@pytest.mark.parametrize("tip", ["", "stranger"])
def test_a_commit_that_nobody_has_signed_is_never_taken(origin: Origin, repository: Repository, tip: str) -> None:
    good = repository.take(origin.wanted()).commit
    bad = origin.commit("v1.36.3", tip)
    # A good signature on top of it does not make it good.
    origin.commit("v1.36.3", "owner")
    taken = repository.take(origin.wanted())
    assert (taken.commit, taken.signed, taken.may_converge) == (good, None, False)
    assert f"commit {bad[:12]} of the branch main is not signed" in taken.note
    assert f"last good revision {good[:12]} was taken" in taken.note


def test_an_unsigned_tip_is_refused_although_it_was_taken_before(origin: Origin, repository: Repository) -> None:
    origin.commit("v1.36.3")
    repository.take(origin.wanted(signed=False))
    assert not repository.take(origin.wanted()).may_converge


@pytest.mark.parametrize(
    ("how", "note"),
    [
        ("signed", ""),
        ("stranger", "The tag v1 is not signed by anyone in reprovision_allowed_signers."),
        ("annotated", "The tag v1 is not signed by anyone in reprovision_allowed_signers."),
        ("light", "The tag v1 is not signed by anyone in reprovision_allowed_signers."),
    ],
)
def test_a_tag(origin: Origin, repository: Repository, how: str, note: str) -> None:
    repository.take(origin.wanted())
    commit = origin.commit("v1.36.3", "owner" if how == "light" else "")
    if how in ("signed", "stranger"):
        origin.sign("owner" if how == "signed" else "stranger", "tag", "-s", "-m", "x", "v1")
    else:
        origin.git("tag", *(("-a", "-m", "x") if how == "annotated" else ()), "v1")
    taken = repository.take(origin.wanted("v1"))
    assert taken.note.startswith(note)
    assert taken.may_converge == (not note)
    assert (taken.commit == commit) == (not note)


def test_an_older_commit_is_refused_whoever_has_signed_it(origin: Origin, repository: Repository) -> None:
    old = origin.git("rev-parse", "HEAD")
    good = origin.commit("v1.36.3", "owner")
    repository.take(origin.wanted())
    for words in (["reset", "--quiet", "--hard", old], ["commit", "--quiet", "--allow-empty", "-S", "-m", "other"]):
        origin.sign("owner", *words)
        taken = repository.take(origin.wanted())
        assert (taken.commit, taken.may_converge) == (good, False)
        assert f"does not contain the last good revision {good[:12]}" in taken.refused
    # Whoever sets the schedule up with it says that it is meant; without signers nobody asked.
    assert repository.take(origin.wanted(signed=False)).may_converge
    assert repository.take(origin.wanted()).may_converge


def test_a_tag_of_another_name_is_refused(origin: Origin, repository: Repository) -> None:
    good = repository.take(origin.wanted()).commit
    origin.sign("owner", "tag", "-s", "-m", "tag v2", "v1")
    origin.commit("v1.36.3", "owner")
    origin.git("update-ref", "refs/tags/v2", "refs/tags/v1")
    taken = repository.take(origin.wanted("v2"))
    assert (taken.commit, taken.may_converge) == (good, False)
    assert taken.note.startswith("The tag v2 points to an object that was signed as another tag.")
    assert repository.take(origin.wanted("v1")).may_converge


def test_a_commit_in_full_needs_no_signature(origin: Origin, repository: Repository) -> None:
    commit = origin.commit("v1.36.3")
    assert repository.take(origin.wanted(commit)) == Revision(commit, commit, False)
    assert repository.take(origin.wanted(commit, signed=False)) == Revision(commit, commit, None)


def test_without_a_good_revision_a_failure_is_an_error(origin: Origin, repository: Repository) -> None:
    with pytest.raises(TrainyardError, match="no branch and no tag other, and other is not a full commit"):
        repository.take(origin.wanted("other"))


def test_a_server_that_does_not_answer(origin: Origin, repository: Repository) -> None:
    good = repository.take(origin.wanted()).commit
    taken = repository.take(Wanted("https://me:secret@127.0.0.1:9/x", "main"))
    assert (taken.commit, taken.may_converge, taken.refused) == (good, False, "")
    assert taken.note.startswith("Fetching from https://127.0.0.1:9/x failed: ")
    assert "secret" not in taken.note


@pytest.mark.parametrize(
    ("version", "packages", "expected"),
    [
        ("v1.36.4", "one==1", "requires another patch version of Kubernetes (v1.36.3 -> v1.36.4); the upgrade verb"),
        ("v1.37.0", "one==1", "requires another minor version of Kubernetes (v1.36.3 -> v1.37.0); the upgrade verb"),
        ("v1.36.3", "one==2", "needs other Python packages; playbooks/reprovision.yml installs them."),
    ],
)
def test_what_a_schedule_must_not_do(
    origin: Origin, repository: Repository, version: str, packages: str, expected: str
) -> None:
    installed = origin.git("rev-parse", "HEAD:requirements.txt")
    good = repository.take(origin.wanted(requirements=installed)).commit
    origin.commit(version, "owner", packages)
    taken = repository.take(origin.wanted(requirements=installed))
    assert (taken.commit, taken.may_converge) == (good, False)
    assert expected in taken.note and expected in taken.refused


def test_a_worktree_stays_until_its_run_is_over(origin: Origin, repository: Repository) -> None:
    commit = repository.take(origin.wanted()).commit
    # In a process of its own, which holds its worktree and is killed.
    holder = os.fork()
    if holder == 0:
        repository.check_out(commit, "living")
        os.kill(os.getpid(), 19)
    os.waitpid(holder, os.WUNTRACED)
    assert repository.clean() == []
    assert (repository.worktrees / "living" / "bundle.lock.yml").is_file()
    os.kill(holder, 9)
    os.waitpid(holder, 0)
    assert repository.clean() == ["living"]
    assert list(repository.worktrees.iterdir()) == []
    assert "living" not in repository.git("worktree", "list")


def test_what_a_killed_git_has_left_does_not_stop_the_next_run(origin: Origin, repository: Repository) -> None:
    repository.take(origin.wanted())
    left = [
        repository.path / "refs" / "trainyard" / "last-good.lock",
        repository.path / "packed-refs.lock",
        repository.path / "objects" / "pack" / "tmp_pack_abc",
    ]
    for path in left:
        path.touch()
    commit = origin.commit("v1.36.3", "owner")
    with repository.locked():
        # Somebody has the repository: this one is not kept waiting, and leaves it alone.
        assert Repository(repository.path, repository.worktrees).clean_unless_used() == [] and left[0].exists()
        repository.clean()
        assert repository.take(origin.wanted()).commit == commit
    assert not any(path.exists() for path in left) and (repository.path / "trainyard.lock").exists()


def test_a_checkout_says_its_own_revision(origin: Origin) -> None:
    commit = origin.git("rev-parse", "HEAD")
    assert of_checkout(origin.path, {}) == Revision(commit, "main")
    (origin.path / "new").write_text("x", encoding="utf-8")
    assert of_checkout(origin.path, {}).note == "1 files of the checkout are changed."
    chosen = Revision("0" * 40, "v1", True, "a note", False)
    assert of_checkout(origin.path, {"TRAINYARD_REVISION": chosen.to_json()}) == chosen
    assert of_checkout(origin.keys, {}).note.startswith(f"The revision of the checkout {origin.keys} is unknown: ")
