"""The lock file: what it must say, the order of its entries, and the content addresses that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.choose import Chooser
from trainyard.core.errors import TrainyardError

C = {"kind": "c_program", "version": "1", "source": "project:a.c", "program": "a"}
IMAGE = {"kind": "image", "version": "1", "reference": "example.org/a:1", "containerfile": "project:image"}
ENTRIES: dict[str, Any] = {
    "top": {**IMAGE, "context": {"bin": "artefact:middle/"}, "base": "artefact:side/oci"},
    "middle": {**IMAGE, "context": {"bin/a": "artefact:bottom/a"}},
    "side": {**IMAGE, "context": {}},
    "bottom": C,
}


def write(tmp_path: Path, entries: object, schema: object = 1) -> Path:
    (tmp_path / "lock.yml").write_text(yaml.safe_dump({"schema": schema, "artefacts": entries}, sort_keys=False))
    return tmp_path / "lock.yml"


def keys(tmp_path: Path, entries: Mapping[str, Any], revision: int = 1) -> dict[str, str]:
    """Content addresses of all entries, with the recipes' files below `tmp_path`."""
    artefacts = lockfile.load(write(tmp_path, entries))
    revisions = {kind: revision if kind == "c_program" else 1 for kind in lockfile.REQUIRED}
    choices = Chooser(artefacts, tmp_path, revisions, Store(tmp_path / "cache"), "source").choose(artefacts)
    return {name: choice.key for name, choice in choices.items()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }")
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Containerfile").write_text("FROM scratch")
    return tmp_path


def test_inputs_come_before_their_users(tmp_path) -> None:
    assert list(lockfile.load(write(tmp_path, ENTRIES))) == ["bottom", "middle", "side", "top"]


def test_results_and_closure(tmp_path) -> None:
    artefacts = lockfile.load(write(tmp_path, ENTRIES))
    assert lockfile.results(artefacts) == ["top"]
    assert list(lockfile.closure(artefacts, ["middle"])) == ["bottom", "middle"]
    machine = {"kind": "disk", "version": "1", "rootfs": "artefact:bottom/a"}
    more = lockfile.load(write(tmp_path, {**ENTRIES, "machine": machine}))
    assert lockfile.results(more) == ["top"], "made only where it is asked for by name"
    larger = {**IMAGE, "context": {}, "on_demand": True, "base": "artefact:top/oci"}
    more = lockfile.load(write(tmp_path, {**ENTRIES, "larger": larger}))
    assert lockfile.results(more) == ["top"], "made from a result, which is one all the same"
    with pytest.raises(TrainyardError, match=r"has no artefact other\. It has: bottom, middle, side, top"):
        lockfile.closure(artefacts, ["other"])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "has no artefacts"),
        ({"a": "1.2"}, "entry a is not a mapping"),
        ({"a": {**C, "version": ""}}, "entry a has no version"),
        ({"a": {**C, "version": None}}, "entry a has no version"),
        ({"a": {"kind": "c_program", "version": "1", "source": "project:a.c"}}, "entry a has no program"),
        ({"a": {**C, "version": 1.30}}, "version of the lock's entry a is read as the number 1.3. Put it in quotes"),
        ({"a": {**C, "kind": "curl"}}, "entry a has the unknown kind curl"),
        ({"a": {"kind": "npm_files", "version": "1", "package": "p", "files": {"a": "b"}}}, "has no integrity"),
        ({"a": {**C, "upstream": {"downloads": [{"url": "https://x/1", "file": "a"}]}}}, "entry a is refused"),
        ({"a": {**C, "source": "artefact:b/c"}}, "entry a needs b, which the lock does not have"),
        (
            {name: {**C, "source": f"artefact:{other}/x"} for name, other in [("a", "b"), ("b", "c"), ("c", "a")]},
            "in a cycle: a -> b -> c -> a",
        ),
    ],
)
def test_refusals(tmp_path, entries: object, message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        lockfile.load(write(tmp_path, entries))


def test_another_schema_and_no_lock_are_refused(tmp_path) -> None:
    with pytest.raises(TrainyardError, match="does not have schema 1"):
        lockfile.load(write(tmp_path, ENTRIES, schema=2))
    with pytest.raises(TrainyardError, match="cannot be read"):
        lockfile.load(tmp_path / "absent.yml")


@pytest.mark.parametrize(
    ("changed", "changes"),
    [
        ("bottom", {"bottom", "middle", "top"}),
        ("middle", {"middle", "top"}),
        ("side", {"side", "top"}),
        ("top", {"top"}),
    ],
)
def test_a_changed_recipe_changes_only_what_depends_on_it(project, changed: str, changes: set[str]) -> None:
    before = keys(project, ENTRIES)
    after = keys(project, {**ENTRIES, changed: {**ENTRIES[changed], "note": "new"}})
    assert {name for name in before if before[name] != after[name]} == changes


def test_files_builders_and_modes_count_but_by_products_do_not(project) -> None:
    before = keys(project, ENTRIES)
    (project / "image" / "__pycache__").mkdir()
    for name in ("__pycache__/a.pyc", "a_test.py", "README.md"):
        (project / "image" / name).write_text("")
    assert keys(project, ENTRIES) == before
    assert keys(project, ENTRIES, revision=2)["side"] == before["side"]
    assert keys(project, ENTRIES, revision=2)["bottom"] != before["bottom"]
    (project / "image" / "Containerfile").chmod(0o755)
    assert keys(project, ENTRIES)["side"] != before["side"]
    (project / "a.c").write_text("int main(void) { return 1; }")
    assert keys(project, ENTRIES)["bottom"] != before["bottom"]


def test_an_origin_does_not_change_what_is_made_from_source(project) -> None:
    upstream = {"image": f"example.org/a:1@sha256:{'a' * 64}"}
    entries = {**ENTRIES, "side": {**ENTRIES["side"], "upstream": upstream}}
    assert keys(project, entries) == keys(project, ENTRIES)


def test_a_missing_input_file_is_named(project) -> None:
    (project / "a.c").unlink()
    with pytest.raises(TrainyardError, match=r"input .*/a.c does not exist"):
        keys(project, ENTRIES)


def test_the_lock_of_this_repository(root) -> None:
    artefacts = lockfile.load(root / "bundle.lock.yml")
    revisions = dict.fromkeys(lockfile.REQUIRED, 1)
    choices = Chooser(artefacts, root, revisions, Store("/nonexistent"), "source").choose(artefacts)
    assert choices.keys() == artefacts.keys()
