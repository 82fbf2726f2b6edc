"""The store: whole or not at all, damage noticed, one run at a time, and what may be removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.bundle import artefact_store, assemble, lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.context import Context
from trainyard.core.errors import WaitError

KEY, OTHER = "a" * 64, "b" * 64


def build(out: Path) -> dict[str, Any]:
    (out / "folder").mkdir()
    (out / "folder" / "file").write_bytes(b"content")
    (out / "link").symlink_to("folder/file")
    return {"fact": 1}


@pytest.fixture
def made(tmp_path) -> Store:
    made = Store(tmp_path)
    made.add("tool", KEY, build)
    return made


def test_what_was_made_is_found_again(made) -> None:
    manifest = made.read("tool", KEY)
    assert manifest and manifest["fact"] == 1
    assert list(manifest["files"]) == ["folder/file"]
    assert made.has("tool", KEY)
    assert not made.has("tool", OTHER)
    assert made.read("tool", OTHER) is None


def test_reading_makes_no_folder(tmp_path) -> None:
    assert Store(tmp_path / "cache").read("tool", KEY) is None
    assert not (tmp_path / "cache").exists()


DAMAGES = [
    lambda path: (path / "folder/file").write_bytes(b"c0ntent"),
    lambda path: (path / "folder/file").write_bytes(b"content and more"),
    lambda path: (path / "folder/file").unlink(),
    lambda path: (path / "folder/more").write_bytes(b""),
    lambda path: (path / "artefact.json").unlink(),
    lambda path: (path / "artefact.json").write_text("{"),
    lambda path: (path / "artefact.json").write_text("[]"),
]
IDS = ["other content", "longer", "file gone", "one more", "manifest gone", "half a manifest", "other manifest"]


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_damage_is_noticed_and_repaired(made, damage: Any) -> None:
    damage(made.path("tool", KEY))
    assert made.read("tool", KEY) is None
    made.add("tool", KEY, build)
    assert made.read("tool", KEY)


@pytest.fixture
def hashed(made, monkeypatch) -> Store:
    """With an artefact that was read before, at a time when its files were no longer new."""
    monkeypatch.setattr(artefact_store, "CLOCK_SECONDS", -1)
    assert made.read("tool", KEY)
    time.sleep(0.05)  # Several ticks of the kernel's clock, which the times of files are from.
    return made


def test_what_has_not_changed_is_not_hashed_again(hashed, monkeypatch) -> None:
    monkeypatch.setattr(artefact_store, "sha256", lambda path: pytest.fail(f"{path} is hashed again"))
    assert Store(hashed.root).read("tool", KEY)


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_damage_is_noticed_after_it_was_read(hashed, damage: Any) -> None:
    damage(hashed.path("tool", KEY))
    assert hashed.read("tool", KEY) is None


def test_damage_is_noticed_although_the_times_of_the_file_are_put_back(hashed) -> None:
    file = hashed.path("tool", KEY) / "folder/file"
    before = file.stat()
    file.write_bytes(b"c0ntent")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert hashed.read("tool", KEY) is None


@pytest.mark.parametrize("remembers", [True, False])
def test_nothing_is_noted_of_new_files_or_in_check_mode(made, monkeypatch, remembers) -> None:
    monkeypatch.setattr(artefact_store, "CLOCK_SECONDS", 2 if remembers else -1)
    assert Store(made.root, remembers=remembers).read("tool", KEY)
    assert not (made.root / "hashed").exists()


def test_what_is_noted_goes_with_the_artefact(hashed) -> None:
    assert list((hashed.root / "hashed").iterdir())
    hashed.remove(hashed.path("tool", KEY))
    assert list((hashed.root / "hashed").iterdir()) == []


def test_a_key_that_begins_alike_is_another(made) -> None:
    assert made.read("tool", KEY[:16] + OTHER[16:]) is None


def test_a_failed_build_leaves_nothing(tmp_path) -> None:
    def fail(out: Path) -> dict[str, Any]:
        build(out)
        raise KeyboardInterrupt

    made = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made.add("tool", KEY, fail)
    assert list(made.folder.iterdir()) == list(made.work.iterdir()) == []


def test_nothing_half_made_is_visible(tmp_path) -> None:
    made = Store(tmp_path)
    made.add("tool", KEY, lambda out: {"seen": [path.name for path in made.folder.iterdir()]})
    assert made.read("tool", KEY)["seen"] == []


def test_leftovers_of_a_killed_run_go(made) -> None:
    (made.work / "tool-0123").mkdir()
    with made.locked(lambda: None):
        assert list(made.work.iterdir()) == []


def test_the_second_run_waits_for_the_first(made) -> None:
    waiting, order = threading.Event(), []

    def second() -> None:
        with made.locked(waiting.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with made.locked(lambda: order.append("waited")):
        thread.start()
        assert waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_the_wait_is_bounded(made, monkeypatch) -> None:
    monkeypatch.setattr(artefact_store, "LOCK_TIMEOUT", 0)
    with (
        made.locked(lambda: None),
        pytest.raises(WaitError, match="another run of the bundle"),
        made.locked(lambda: None),
    ):
        pass


def test_a_killed_run_holds_no_lock(made) -> None:
    code = (
        f"import fcntl, os; fcntl.flock(open({str(made.root / 'lock')!r}, 'w'), fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False, timeout=30)
    with made.locked(lambda: pytest.fail("the lock is held")):
        pass


def test_manifests_of_a_name_newest_first(made) -> None:
    made.add("tool", OTHER, lambda out: {"fact": 2})
    made.add("tool-kit", KEY, lambda out: {})
    os.utime(made.path("tool", KEY), (1, 1))
    assert [manifest["fact"] for manifest in made.manifests("tool")] == [2, 1]


def test_only_what_is_old_and_belongs_to_no_entry_is_removed(tmp_path) -> None:
    (tmp_path / "a.c").write_text("")
    entry = {"kind": "c_program", "version": "1", "source": "project:a.c", "program": "a"}
    (tmp_path / "lock.yml").write_text(yaml.safe_dump({"schema": 1, "artefacts": {"tool": entry}}))
    artefacts = lockfile.load(tmp_path / "lock.yml")
    made = Store(tmp_path / "cache")
    keep = assemble.current(artefacts, tmp_path, made, {})
    for path in [*keep, made.folder / "tool-old", made.folder / "tool-new", made.root / "downloads" / "tool"]:
        path.mkdir(parents=True)
        os.utime(path, (0, 0))
    os.utime(made.folder / "tool-new", (86400 * 9, 86400 * 9))
    found = assemble.stale(made, keep, days=2, now=86400 * 10)
    assert [path.name for path in found] == ["tool-old", "tool"]
    assemble.remove(found, made, Context(tmp_path, made.root, ""))
    assert assemble.stale(made, keep, days=2, now=86400 * 10) == []
    assert all(path.exists() for path in keep)
    assert assemble.stale(Store(tmp_path / "absent"), keep, days=2) == []
