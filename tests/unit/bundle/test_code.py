"""The project's own code as an artefact: made anywhere, by what pods notice of it, and apart from its runtime."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.context import Context
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.oci import code_folder as folder

LOCK = {
    "schema": 1,
    "artefacts": {
        "code": {"kind": "code", "version": "1", "reference": "trainyard/code:{version}", "folder": "project:code"},
        "tool": {"kind": "c_program", "version": "1", "source": "project:code/main.py", "program": "tool"},
    },
}


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "code/main.py",
        "code/lib/step.py",
        "code/lib/step_test.py",
        "code/README.md",
        "code/images/Containerfile",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "code/.trainignore").write_text("/images/\n")
    (folder / "lock.yml").write_text(yaml.safe_dump(LOCK))
    return folder


def assembly(project: Path, *wanted: str, delivered: Path | None = None) -> Assembly:
    cache = project.parent / "cache"
    entries, context = lockfile.load(project / "lock.yml"), Context(project, cache, "")
    return Assembly(entries, wanted or ["code"], Store(cache), context, "source", delivered=delivered)


def made(project: Path, **options: Any) -> dict[str, Any]:
    """The artefact's facts after it was made where it had to be."""
    needed = assembly(project, **options)
    if needed.missing:
        needed.build_missing(Progress(None))
    return needed.result()["code"]


def packed(layout: Path, digest: str) -> list[str]:
    blobs = layout / "blobs"
    manifest = json.loads((blobs / digest.replace(":", "/")).read_text())
    with tarfile.open(blobs / manifest["layers"][0]["digest"].replace(":", "/")) as stream:
        return [member.name for member in stream if member.isfile()]


def test_it_is_an_image_that_no_program_has_made(project, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    future = assembly(project).result()["code"]
    facts = made(project)
    assert (facts["kind"], facts["reference"], facts["origin"]) == ("image", "trainyard/code:1", "source")
    assert {**future, "digest": facts["digest"]}.items() <= facts.items(), "a check run says the same but the digest"
    assert packed(Path(facts["layout"]), facts["digest"]) == ["lib/step.py", "main.py"]


@pytest.mark.parametrize("name", ["README.md", "lib/step_test.py", "images/Containerfile", ".trainignore", "new/a.md"])
def test_what_is_not_in_it_makes_nothing_anew(project, name: str) -> None:
    before = made(project)
    (project / "code" / name).parent.mkdir(exist_ok=True)
    with (project / "code" / name).open("a") as stream:
        stream.write("\n# more\n")
    assert assembly(project).missing == []
    assert made(project) == before


def test_an_edit_of_the_code_has_another_digest_and_going_back_the_first(project) -> None:
    before = made(project)
    (project / "code/main.py").write_text("another")
    assert made(project)["digest"] != before["digest"]
    (project / "code/main.py").write_text("code/main.py")
    assert assembly(project).missing == []
    assert made(project) == before


def test_no_builder_is_asked_for_it(project, tmp_path) -> None:
    """A controller without sudo makes it itself; what needs programs comes from the builder."""
    both = assembly(project, "code", "tool", delivered=tmp_path / "archives")
    assert (sorted(both.missing), both.recipes) == (["code", "tool"], ["tool"])
    assert made(project, delivered=tmp_path / "archives")["origin"] == "source"
    assert sorted(assembly(project, "code", "tool").recipes) == ["tool"]


def test_the_runtime_of_this_repository_knows_no_training(root) -> None:
    entries = lockfile.load(root / "bundle.lock.yml")
    closure = lockfile.closure(entries, ["image_tensorflow"]).values()
    paths = {reference.path for entry in closure for reference in entry.references() if reference.kind == "project"}
    assert [path for path in paths if path.startswith("workloads") and "images/tensorflow" not in path] == []


def test_the_code_of_this_repository_is_trainings_and_nothing_else(root) -> None:
    (folder,) = lockfile.load(root / "bundle.lock.yml")["image_workloads"].references()
    names = [str(path.relative_to(root / folder.path)) for path in lockfile.tree_files(root / folder.path)]
    assert "training/mnist_ps/main.py" in names
    others = [name for name in names if not name.endswith(".py") or name.startswith(("images/", "catalogue"))]
    # The table that they ask at their start.
    assert others == ["compat.json"]


def test_an_archive_is_the_same_bytes_from_the_same_files(project, tmp_path) -> None:
    recipe = {"kind": "archive", "version": "1", "file": "set.tar", "files": {"a/main.py": "project:code/main.py"}}
    (project / "lock.yml").write_text(yaml.safe_dump({"schema": 1, "artefacts": {"set": recipe}}))
    digests = []
    for name in ("first", "second"):
        needed = Assembly(
            lockfile.load(project / "lock.yml"), ["set"], Store(tmp_path / name), Context(project, tmp_path / name, ""),
            "source", delivered=None,
        )  # fmt: skip
        needed.build_missing(Progress(None))
        facts = needed.result()["set"]
        content = (Path(facts["path"]) / facts["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == facts["sha256"]
        with tarfile.open(Path(facts["path"]) / "set.tar") as stream:
            assert [member.name for member in stream] == ["a", "a/main.py"]
        digests.append(facts["sha256"])
        (project / "code/main.py").touch()
    assert digests[0] == digests[1]


def test_an_archive_may_be_larger_than_a_program(tmp_path) -> None:
    with (tmp_path / "wheel.whl").open("wb") as stream:
        stream.truncate(folder.LIMIT + 1)
    with pytest.raises(TrainyardError, match="at most 64 MiB are packed"):
        folder.read(tmp_path)
    assert [each.name for each in folder.read(tmp_path, limit=None)] == ["wheel.whl"]
