"""Bringing the store to the state of the lock: only what is missing, inputs first, two at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.bundle import assemble, delivery, lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.context import Context
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.core.flock import locked
from trainyard.core.progress import Progress

C = {"kind": "c_program", "version": "1", "program": "a"}
ENTRIES = {
    "left": {**C, "source": "project:lock.yml"},
    "right": {**C, "source": "project:lock.yml", "note": "another"},
    "joint": {**C, "source": "artefact:left/file", "more": "artefact:right/file"},
    "alone": {**C, "source": "project:lock.yml", "note": "alone"},
}


class Bench:
    """An assembly whose builder writes the artefact's name and remembers the order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.order: list[str] = []
        self.hook: Callable[[str], None] = lambda name: None
        monkeypatch.setattr(assemble, "BUILDERS", {"c_program": (1, self.build)})
        (folder / "lock.yml").write_text(yaml.safe_dump({"schema": 1, "artefacts": ENTRIES}))

    def build(self, artefact: lockfile.Artefact, out: Path, context: Context) -> dict[str, Any]:
        for needed in artefact.inputs():
            assert (context.made[needed] / "file").read_text() == needed
        self.hook(artefact.name)
        (out / "file").write_text(artefact.name)
        self.order.append(artefact.name)
        return {}

    def assembly(self, *wanted: str, also: Sequence[str] = ()) -> Assembly:
        cache = self.folder / "cache"
        entries, context = lockfile.load(self.folder / "lock.yml"), Context(self.folder, cache, "")
        return Assembly(entries, wanted or None, Store(cache), context, "source", also)

    def run(self, *wanted: str) -> list[str]:
        """Make what is missing and return it in the order in which it was ready."""
        self.order = []
        self.assembly(*wanted).build_missing(Progress(str(self.folder / "progress")))
        return self.order

    def progress(self) -> list[str]:
        return (self.folder / "progress").read_text().splitlines()


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_everything_is_made_once_inputs_first(bench) -> None:
    assert set(bench.run()) == set(ENTRIES)
    assert bench.order.index("joint") > max(bench.order.index("left"), bench.order.index("right"))
    assert bench.assembly().missing == []
    assert bench.run() == []


def test_tools_are_prepared_while_no_other_run_builds(bench) -> None:
    def prepare() -> None:
        assert bench.order == []
        with pytest.raises(WaitError), locked(bench.folder / "cache/lock", what="the other run", timeout=0):
            pass

    bench.assembly("alone").build_missing(Progress(None), prepare)
    assert bench.order == ["alone"]


def test_only_what_is_wanted_is_looked_at(bench) -> None:
    assert bench.assembly("alone").missing == ["alone"]
    assert set(bench.assembly("alone", also=["left"]).missing) == {"alone", "left"}
    assert bench.run("alone") == ["alone"]
    result = bench.assembly().result()
    assert {name for name, facts in result.items() if "origin" in facts} == {"alone"}
    assert all(facts["path"] for facts in result.values())


def test_what_was_made_on_the_way_is_no_result(bench) -> None:
    def names() -> set[str]:
        return set(bench.assembly("joint").result())

    # Before, by the run that makes it, and by one that finds it.
    making = bench.assembly("joint")
    assert making.missing == ["left", "right", "joint"] and names() == {"joint"}
    making.build_missing(Progress(None))
    assert set(making.result()) == names() == {"joint"}


def test_inputs_of_what_is_there_are_not_missed(bench) -> None:
    bench.run()
    store = Store(bench.folder / "cache")
    for name in ("left", "right"):
        path = store.path(name, bench.assembly().keys[name])
        (path / "file").write_text("damaged")
    assert bench.assembly().missing == []
    joint = store.path("joint", bench.assembly().keys["joint"])
    (joint / "file").unlink()
    assert bench.assembly().missing == ["left", "right", "joint"]
    bench.run()
    assert bench.assembly("joint", "left").missing == []


def test_two_run_side_by_side(bench) -> None:
    meeting = threading.Barrier(2, timeout=20)
    bench.hook = lambda name: meeting.wait() and None if name in ("left", "right") else None
    bench.run("joint")
    assert bench.order[-1] == "joint"


def test_a_failure_keeps_what_was_made_and_names_the_artefact(bench) -> None:
    def fail(name: str) -> None:
        if name == "right":
            raise TrainyardError("The compiler is out of cheese.", remedy="Buy some.", status=7)

    bench.hook = fail
    with pytest.raises(TrainyardError, match="The artefact right cannot be made: The compiler is out") as failure:
        bench.run("joint")
    assert (failure.value.remedy, failure.value.facts) == ("Buy some.", {"status": 7})
    assert "joint" not in bench.order
    bench.hook = lambda name: None
    assert bench.run("joint") == ["right", "joint"]


def test_a_bug_is_not_dressed_up(bench) -> None:
    def fail(name: str) -> None:
        raise ZeroDivisionError

    bench.hook = fail
    with pytest.raises(ZeroDivisionError):
        bench.run("alone")


def test_progress_says_what_how_long_and_how_many_are_left(bench) -> None:
    bench.run("joint")
    lines = bench.progress()
    assert sorted(lines[:2]) == ["left 1: started", "right 1: started"]
    assert lines[-2:] == ["joint 1: started", "joint 1: 0 s (3 of 3, 0 left)"]


def test_what_another_run_made_meanwhile_is_taken(bench) -> None:
    waiting = bench.assembly("alone")
    bench.run("alone")
    bench.order = []
    waiting.build_missing(Progress(None))
    assert bench.order == []
    assert waiting.result()["alone"]["version"] == "1"


def test_results_say_where_things_are(bench) -> None:
    bench.run("alone")
    found = bench.assembly("alone").result()["alone"]
    assert found["origin"] == "source"
    assert Path(found["path"], "file").read_text() == "alone"
    assert {"key", "kind", "version"} <= found.keys()
    assert "files" not in found


def test_what_a_builder_delivers_needs_no_inputs_here(bench, tmp_path_factory) -> None:
    bench.run("joint")
    archives = tmp_path_factory.mktemp("archives")
    made = bench.assembly("joint")
    delivery.pack(made.store, "joint", made.keys["joint"], archives)
    entries, store = lockfile.load(bench.folder / "lock.yml"), Store(archives / "cache")
    context = Context(bench.folder, store.root, "")
    taken = Assembly(entries, ["joint"], store, context, "source", delivered=archives)
    assert taken.missing == taken.recipes == ["joint"]
    taken.build_missing(Progress(None))
    assert taken.manifests == {"joint": made.manifests["joint"]}
    assert [path.name for path in store.folder.iterdir()] == [made.store.path("joint", made.keys["joint"]).name]


def test_what_runs_on_the_controller_is_made_there(bench, tmp_path_factory) -> None:
    (bench.folder / "lock.yml").write_text(
        yaml.safe_dump({"schema": 1, "artefacts": {**ENTRIES, "own": {**ENTRIES["alone"], "on_controller": True}}})
    )
    entries, store = lockfile.load(bench.folder / "lock.yml"), Store(tmp_path_factory.mktemp("controller"))
    context, archives = Context(bench.folder, store.root, ""), bench.folder / "archives"
    taken = Assembly(entries, ["alone"], store, context, "source", delivered=archives)
    assert (taken.recipes, taken.kinds_made_here) == (["alone"], set())
    own = Assembly(entries, ["own"], store, context, "source", delivered=archives)
    assert (own.recipes, own.kinds_made_here) == ([], {"c_program"})
    own.build_missing(Progress(None))
    assert bench.order == ["own"]
