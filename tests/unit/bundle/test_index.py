"""The index of a mirror: rendered where artefacts are made, read where none are, and refused where it does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainyard.bundle import index
from trainyard.core.errors import TrainyardError

LOCK = """
schema: 1
artefacts:
  code: {kind: code, version: "1", reference: "x/code:{version}", folder: project:code}
  manifest: {kind: go_module_files, version: v1, wrapper: project:code, module: m}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "lock.yml").write_text(LOCK, encoding="utf-8")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "main.py").write_text("1", encoding="utf-8")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "m.yaml").write_text("kind: X\n", encoding="utf-8")
    return tmp_path


def made(project: Path) -> dict[str, dict[str, Any]]:
    """As the module `bundle` returns it."""
    code: dict[str, Any] = {
        "path": "/cache/code",
        "kind": "image",
        "version": "1",
        "reference": "x/code:1",
        "digest": "sha256:1",
    }
    code |= {"layout": "/cache/code/oci", "seconds": 3.1, "origin": "source"}
    return {"code": code, "manifest": {"path": str(project / "made"), "kind": "go_module_files", "version": "v1"}}


def test_what_is_published_is_taken(project: Path) -> None:
    text = index.render(made(project), project / "lock.yml", project)
    assert text == index.render(dict(reversed(made(project).items())), project / "lock.yml", project)
    assert str(project) not in text
    (project / "index.json").write_text(text, encoding="utf-8")
    keys = index.recipes(project / "lock.yml", project, ["code", "manifest"])
    chosen = index.choose(index.read(str(project / "index.json")), keys, "there")
    assert chosen["manifest"]["texts"] == {"m.yaml": "kind: X\n"}
    assert {"kind": "image", "digest": "sha256:1", "reference": "x/code:1"}.items() <= chosen["code"].items()
    assert chosen["code"].keys().isdisjoint(index.LOCAL)


def test_a_check_run_that_has_made_nothing_has_an_index_too(project: Path) -> None:
    planned = {"manifest": {"path": "/nonexistent", "kind": "go_module_files", "version": "v1"}}
    assert json.loads(index.render(planned, project / "lock.yml", project))["artefacts"]["manifest"]["texts"] == {}


def test_another_revision_is_refused(project: Path) -> None:
    entries = json.loads(index.render(made(project), project / "lock.yml", project))["artefacts"]
    (project / "code" / "main.py").write_text("2", encoding="utf-8")
    keys = index.recipes(project / "lock.yml", project, ["code", "manifest"])
    with pytest.raises(TrainyardError, match="has another code, manifest than this revision makes"):
        index.choose(entries, keys, "https://there/index.json")
    with pytest.raises(TrainyardError, match="lacks code and has another manifest than this"):
        index.choose({"manifest": entries["manifest"]}, keys, "there")


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"schema": 2, "artefacts": {"a": {}}}'])
def test_what_is_no_index_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "index.json").write_text(text, encoding="utf-8")
    with pytest.raises(TrainyardError, match=r"The index .*index.json (cannot be read|is empty or has)") as caught:
        index.read(str(tmp_path / "index.json"))
    # Only a mirror's is written by the supply.
    assert caught.value.remedy.startswith("Run playbooks/reprovision.yml ")


def answers(found: dict[str, str]) -> Callable[[str, str], str]:
    def ask(url: str, ca_file: str) -> str:
        assert ca_file == "ca.crt"
        return found[url]

    return ask


def test_tags_that_lead_elsewhere() -> None:
    found = {
        "https://m:5000/v2/x/code/manifests/1": "sha256:1",
        "https://m:5000/v2/h:1/y/manifests/2": "sha256:other",
        "https://m:5000/v2/z/manifests/3": "",
    }
    images = {"x/code:1": "sha256:1", "h:1/y:2": "sha256:2", "z:3": "sha256:3"}
    assert index.differing("https://m:5000", images, "ca.crt", answers(found)) == {"h:1/y:2": "sha256:other", "z:3": ""}


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(TrainyardError, match="does not answer"):
        index.differing("https://127.0.0.1:9", {"x:1": "sha256:1"}, "")
