"""What lies on the disk: whole or not at all, for its owner alone, pruned but never the last good run."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.drift.report import begun
from trainyard.drift.report_store import DAY, LONG, MB, BusyError, Entry, Kept, Removal, Store, doomed, prune

NOW = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "reprovision")


def end(store: Store, name: str, status: int = 0, **more: Any) -> None:
    report = store.report(name)
    assert report is not None
    store.write_json(f"runs/{name}/report.json", {**report, "state": "complete", "exit_status": status, **more})


def test_a_run_has_a_name_that_sorts_and_files_for_its_owner_alone(store: Store) -> None:
    names = [store.begin(NOW + seconds, begun("report", "report", NOW + seconds)) for seconds in (0, 1, 1)]
    assert store.names() == sorted(names, reverse=True) and names[0].startswith("20270115T080000Z-")
    store.write(f"runs/{names[0]}/output.txt.gz", gzip.compress(b"x"))
    for folder, _, files in os.walk(store.folder):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert all(stat.S_IMODE(os.stat(os.path.join(folder, file)).st_mode) == 0o600 for file in files)


def test_a_file_is_written_whole_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.write("status.json", "old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TrainyardError, match="No space left on device"):
        store.write("status.json", "new")
    assert path.read_text() == "old" and [each.name for each in store.folder.iterdir()] == ["status.json"]


def test_one_run_at_a_time_and_nothing_is_stale(store: Store) -> None:
    with store.locked(), pytest.raises(BusyError, match="Another run"), Store(store.folder).locked():
        pass
    with store.locked():
        assert (store.folder / "lock").exists()


def test_what_a_killed_run_left_is_closed(store: Store) -> None:
    done, cut, empty = (store.begin(NOW + each, begun("report", "report", NOW)) for each in range(3))
    end(store, done)
    (store.runs / empty / "report.json").unlink()
    left, kept = store.runs / cut / ".new-abc", store.folder / ".trainyard-abc"
    left.write_text("{")
    kept.write_text("{")
    assert store.close_interrupted(NOW + 9) == [cut]
    report = store.report(cut)
    assert report is not None and (report["state"], report["exit_status"], report["ended"]) == (
        "interrupted", 2, NOW + 9,
    )  # fmt: skip
    assert not left.exists() and not kept.exists() and store.names() == [cut, done]
    assert store.close_interrupted(NOW + 9) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}'])
def test_a_report_that_is_none_is_passed_over(store: Store, text: str) -> None:
    name = store.begin(NOW, begun("report", "report", NOW))
    (store.runs / name / "report.json").write_text(text)
    assert store.report(name) is None and store.reports() == []


@pytest.mark.parametrize("name", ["..", "../../etc", "", "20270115T080000Z-abcd/.."])
def test_a_name_leads_nowhere_else(store: Store, name: str) -> None:
    assert store.report(name) is None
    with pytest.raises(ValueError, match="is not a run"):
        store.remove(name)


def test_history_is_kept(store: Store) -> None:
    assert store.history() == {}
    store.keep_history({"a": Entry("worker1", 1.0, 2.0, 3)})
    assert store.history() == {"a": Entry("worker1", 1.0, 2.0, 3)}


def runs(*sizes: tuple[float, bool, int, int]) -> list[Kept]:
    """Runs of these ages in days, whether good, and sizes of both kinds in MB."""
    return [Kept(f"r{age:g}", NOW - age * DAY, good, long * MB, short * MB) for age, good, long, short in sizes]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([], []),
        (runs((0, True, 1, 1), (1, True, 1, 1)), []),
        # By count.
        (runs(*((age, True, 1, 1) for age in range(5))), [Removal("r4", False), Removal("r3", False)]),
        # By age.
        (runs((0, True, 1, 1), (401, True, 1, 1), (500, True, 0, 1)), [Removal("r500", True), Removal("r401", True)]),
        # Never the last good one, however old, with all that it has.
        (runs((0, False, 1, 1), (401, True, 1, 1), (500, True, 1, 1)), [Removal("r500", True)]),
        (runs((0, False, 1, 1), (1, False, 1, 1), (2, False, 1, 1), (9, True, 1, 1)), []),
        # By size: first the long files, the oldest first, then whole runs.
        (runs((0, True, 9, 1), (1, False, 8, 1), (2, False, 8, 1)), [Removal("r2", False)]),
        (runs((0, True, 9, 8), (1, False, 1, 2), (2, False, 1, 2)), [Removal("r2", True), Removal("r1", False)]),
        # The run that is at its end stays even if it alone is too big.
        (runs((0, True, 90, 8), (1, False, 1, 2)), [Removal("r1", True)]),
    ],
)
def test_what_has_to_go(kept: list[Kept], expected: list[Removal]) -> None:
    assert doomed(kept, NOW, days=400, count=3, megabytes=20) == expected


def test_a_report_that_cannot_be_read_is_as_old_as_its_name(store: Store) -> None:
    names = [store.begin(NOW - age * DAY, {"schema": 2}) for age in (500, 3, 0)]
    prune(store, NOW, days=400, count=2, megabytes=500)
    assert store.names() == names[:0:-1]


def test_pruning_leaves_what_it_says(store: Store) -> None:
    names = [store.begin(NOW - age * DAY, begun("report", "report", NOW - age * DAY)) for age in (500, 2, 1, 0)]
    for name in names:
        end(store, name)
        for file in (*LONG, "report.md"):
            store.write(f"runs/{name}/{file}", "x")
    prune(store, NOW, days=400, count=2, megabytes=500)
    assert store.names() == names[:0:-1]
    files = [{each.name for each in (store.runs / name).iterdir()} for name in names[1:]]
    whole = {"report.json", "report.md", *LONG}
    assert files == [{"report.json", "report.md"}, whole, whole]
