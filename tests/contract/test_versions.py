"""Test that the page of versions matches the lock."""

from __future__ import annotations

from checkout import ROOT, load, read_yaml


def test_the_page_of_versions_is_current() -> None:
    versions = load(ROOT / "tools" / "versions.py")
    page = versions.render(read_yaml(ROOT / "bundle.lock.yml"))
    assert versions.TARGET.read_text(encoding="utf-8") == page, "run `python3 tools/versions.py`"
