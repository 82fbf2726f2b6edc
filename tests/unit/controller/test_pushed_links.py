"""A push by root into the repository of another user: what that user puts in the way leads root nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.controller.bare_repository import LOCK, Pushed, make_plan
from trainyard.core.errors import TrainyardError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led to files of others")

USER = "nobody"


@pytest.fixture
def service() -> Iterator[Path]:
    """A folder that the user can reach, with one of its own below; pytest's are for root alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "git").mkdir()
        shutil.chown(folder / "git", USER, "nogroup")
        (folder / "outside" / "repository.git").mkdir(parents=True)
        (folder / "outside" / "file").write_text("root's")
        yield folder


@pytest.fixture
def pushed(service: Path) -> Pushed:
    checkout = service / "checkout"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(checkout)]
    checkout.mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "x"],
                  ["bundle", "create", "-q", str(service / "bundle"), "HEAD"]):  # fmt: skip
        subprocess.run([*git, *words], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    (service / "bundle").chmod(0o600)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    below = service / "git"
    return Pushed(below / "repository.git", below / "installed", "refs/heads/main", head, service / "bundle", user=USER)


def _names(folder: Path) -> list[tuple[str, int]]:
    return [(str(path.relative_to(folder)), path.lstat().st_uid) for path in sorted(folder.rglob("*"))]


def test_all_of_it_is_the_users(service: Path, pushed: Pushed) -> None:
    make_plan(pushed).execute()
    assert make_plan(pushed).steps == ()
    assert {uid for _, uid in _names(service / "git")} == {(service / "git").stat().st_uid}


def test_a_repository_that_is_a_link_gets_no_file(service: Path, pushed: Pushed) -> None:
    make_plan(pushed).execute()
    shutil.rmtree(pushed.path)
    pushed.path.symlink_to(service / "outside" / "repository.git")
    before = _names(service / "outside")
    with pytest.raises(TrainyardError):
        make_plan(pushed).execute()
    assert _names(service / "outside") == before


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_a_lock_that_is_a_file_of_root_stays_its_own(service: Path, pushed: Pushed, kind: str) -> None:
    make_plan(pushed).execute()
    lock, victim = pushed.path / LOCK, service / "outside" / "file"
    lock.unlink()
    lock.symlink_to(victim) if kind == "link" else os.link(victim, lock)
    shutil.rmtree(pushed.checkout)
    with pytest.raises(TrainyardError):
        make_plan(pushed).execute()
    assert victim.stat().st_uid == 0


def test_a_checkout_that_is_a_link_is_removed_alone(service: Path, pushed: Pushed) -> None:
    make_plan(pushed).execute()
    shutil.rmtree(pushed.checkout)
    pushed.checkout.symlink_to(service / "outside")
    before = _names(service / "outside")
    make_plan(pushed).execute()
    assert not pushed.checkout.is_symlink() and _names(service / "outside") == before
