"""Lock files of all shapes: each has a version, or is refused, and no run ends with a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.reprovision.origins import LOCK, Origin, bare
from trainyard.core.errors import TrainyardError
from trainyard.schedule.repository import change, version

NONE = [
    "a: [",
    "",
    "- 1",
    "artefacts:",
    "artefacts: {kubernetes: v1}",
    "a: 2026-99-99",
    "\x00",
    "[" * 9999,
    "!!python/x 1",
]


def test_a_version() -> None:
    assert version(LOCK.format("v1.36.3")) == "v1.36.3"
    assert change("v1.36.3", "v1.36.3") == ""


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_no_version(text: str) -> None:
    with pytest.raises(ValueError):
        version(text)


def test_a_lock_file_that_is_none_is_refused_like_a_bad_signature(tmp_path: Path) -> None:
    origin, repository = Origin(tmp_path), bare(tmp_path)
    good = repository.take(origin.wanted()).commit
    (origin.path / "bundle.lock.yml").write_text("a: [", encoding="utf-8")
    origin.sign("owner", "commit", "--quiet", "-a", "-S", "-m", "x")
    taken = repository.take(origin.wanted())
    assert (taken.commit, taken.may_converge) == (good, False)
    assert "names no version of Kubernetes" in taken.refused
    (tmp_path / "other").mkdir()
    with pytest.raises(TrainyardError, match="names no version of Kubernetes"):
        bare(tmp_path / "other").take(origin.wanted())
