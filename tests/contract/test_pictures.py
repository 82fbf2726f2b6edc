"""Tests of the console's screenshots: present, small, and of the current pages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from checkout import ROOT

from tests.browser.pictures import CONSOLE, DIGEST, DOCUMENTS, HEIGHT, LARGEST, PICTURES, WIDTH, digest, shown, wanted
from tests.browser.png import size

README = ("nodes", "pending", "receipt", "run", "tensorboard")
"""Pictures that the main page must show."""
PAGES = {"runs": "runs", "run": "run", "nodes": "nodes", "receipts": "receipts", "receipt": "receipt",
         "kinds": "cluster", "objects": "objects", "object": "object", "about": "about", "login": "login"}  # fmt: skip
"""Template of a page -> its picture."""
PARTS = {"base", "macros", "error"}
"""Templates that are not pages."""


def test_the_pictures_are_of_the_pages_as_they_are() -> None:
    kept = DIGEST.read_text(encoding="utf-8").strip() if DIGEST.is_file() else ""
    assert kept == digest(), "templates, styles or scripts are newer than the pictures: make screenshots"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_shows_is_there(document: Path) -> None:
    found = shown(document)
    assert found, f"{document} shows no picture"
    assert [str(path.relative_to(ROOT)) for path in found if not path.is_file()] == []


def test_each_picture_is_small_has_its_size_and_is_shown() -> None:
    kept = sorted(PICTURES.glob("*.png"))
    large = {path.name: path.stat().st_size for path in kept if path.stat().st_size > LARGEST}
    assert large == {}
    assert {path.name: size(path.read_bytes()) for path in kept} == {path.name: (WIDTH, HEIGHT) for path in kept}
    assert {path.stem for path in kept} - wanted() == set()


def test_every_page_has_its_picture() -> None:
    pages = {path.name.removesuffix(".html.j2") for path in (CONSOLE / "templates").glob("*.j2")}
    assert pages - PARTS == PAGES.keys()
    assert set(PAGES.values()) <= {path.stem for path in shown(ROOT / "docs" / "tasks" / "console.md")}
    assert {path.stem for path in shown(ROOT / "README.md")} == set(README)


@pytest.mark.parametrize("change", ["templates/run.html.j2", "static/style.css", "static/run.js"])
def test_a_change_of_a_page_is_another_hash(tmp_path: Path, change: str) -> None:
    for folder in ("templates", "static"):
        shutil.copytree(CONSOLE / folder, tmp_path / folder)
    assert digest(tmp_path) == digest()
    with (tmp_path / change).open("a", encoding="utf-8") as stream:
        stream.write(" ")
    assert digest(tmp_path) != digest()
