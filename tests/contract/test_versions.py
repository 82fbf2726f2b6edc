"""Test that the page of versions matches the lock."""

from __future__ import annotations

import importlib.util

from checkout import ROOT, read_yaml


def test_the_page_of_versions_is_current() -> None:
    spec = importlib.util.spec_from_file_location("docs_versions", ROOT / "tools" / "versions.py")
    assert spec and spec.loader
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    page = versions.render(read_yaml(ROOT / "bundle.lock.yml"))
    assert versions.TARGET.read_text(encoding="utf-8") == page, "run `python3 tools/versions.py`"
