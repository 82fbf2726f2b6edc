"""A server that sends too much, or objects that do harm: nothing of it is kept, and the last good revision is taken."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.reprovision.origins import Origin, bare
from trainyard.core.errors import TrainyardError
from trainyard.schedule import repository as fetching
from trainyard.schedule.repository import Repository


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return bare(tmp_path)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_repository_that_is_too_large_is_cut_off(
    origin: Origin, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = repository.take(origin.wanted()).commit
    before = _size(repository.path)
    (origin.path / "large").write_bytes(os.urandom(3 * 2**20))
    tip = origin.commit("v1.36.3", "owner")
    monkeypatch.setattr(fetching, "FETCH_BYTES", 2**20)
    taken = repository.take(origin.wanted())
    assert (taken.commit, taken.may_converge, taken.refused) == (good, False, "")
    assert "it sends more than 1 MiB" in taken.note
    assert _size(repository.path) - before < 2**16
    monkeypatch.setattr(fetching, "FETCH_BYTES", 2**23)
    assert repository.take(origin.wanted()).commit == tip


def test_many_small_objects_count_together(
    origin: Origin, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer than fetch.unpackLimit: git would write each of them as a file of its own."""
    good = repository.take(origin.wanted()).commit
    for number in range(40):
        (origin.path / f"{number}").write_bytes(os.urandom(2**16))
    origin.commit("v1.36.3", "owner")
    monkeypatch.setattr(fetching, "FETCH_BYTES", 2**20)
    taken = repository.take(origin.wanted())
    assert taken.commit == good and "it sends more than 1 MiB" in taken.note


def _tree(origin: Origin, name: str) -> str:
    """A commit whose tree has an entry that git itself would never write."""
    blob = origin.git("hash-object", "-w", "requirements.txt")
    raw = f"100644 {name}\0".encode() + bytes.fromhex(blob)
    argv = ["git", "-C", str(origin.path), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    tree = subprocess.run(argv, input=raw, check=True, capture_output=True).stdout.decode().strip()
    return origin.git("commit-tree", "-m", "x", "-p", "HEAD", tree)


@pytest.mark.parametrize("name", [".git", ".GIT", "..", "a/b", "git~1"])
def test_a_tree_that_would_leave_its_folder_is_refused(origin: Origin, repository: Repository, name: str) -> None:
    good = repository.take(origin.wanted(signed=False)).commit
    bad = _tree(origin, name)
    origin.git("update-ref", "refs/heads/main", bad)
    taken = repository.take(origin.wanted(signed=False))
    assert (taken.commit, taken.may_converge) == (good, False)
    assert "fsck" in taken.note and "Fetching from" in taken.note


def test_a_full_disk_is_said_before(origin: Origin, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(f_bavail=fetching.RESERVE_BYTES // 4096, f_frsize=4096)
    monkeypatch.setattr(fetching.os, "statvfs", lambda _: full)
    with pytest.raises(TrainyardError, match=r"less than 258 MiB left; nothing was fetched\. Make room"):
        repository.take(origin.wanted())
