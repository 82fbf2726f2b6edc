"""A library that stands in for a vendor's has every function of the vendor's header."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainyard.bundle.build import plain_files
from trainyard.bundle.context import Context
from trainyard.bundle.lockfile import Artefact
from trainyard.core.errors import TrainyardError

RECIPE = {
    "header": "artefact:header/tool.h",
    "declares": r"EXPORT \w+ (tool\w+)\(",
    "missing_result": 3,
    "source": "project:tool.c",
    "library": "libtool.so",
    "soname": "libtool.so.1",
    "programs": {"show": "project:show.c"},
    "files": {"table.json": "project:table.json"},
}

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    for name in ("project", "header", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "header/tool.h").write_text("#define EXPORT\nEXPORT int toolOne(int);\nEXPORT int toolTwo(int, int);\n")
    (tmp_path / "project/tool.c").write_text("#include <tool.h>\nint toolOne(int number) { return number + 1; }\n")
    (tmp_path / "project/show.c").write_text("#include <tool.h>\nint main(void) { return toolOne(41); }\n")
    (tmp_path / "project/table.json").write_text("{}\n")
    return Context(tmp_path / "project", tmp_path / "cache", "", made={"header": tmp_path / "header"})


def build(context: Context, out: Path, **changed: Any) -> dict[str, Any]:
    return plain_files.c_library(Artefact("tool", "c_library", "1", {**RECIPE, **changed}, {}, None), out, context)


def test_what_is_not_written_is_added(context: Context, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(context, out) == {"functions": 2}
    assert sorted(path.name for path in out.iterdir()) == ["libtool.so", "show", "table.json"]
    library = ctypes.CDLL(str(out / "libtool.so"))
    assert (library.toolOne(1), library.toolTwo(1, 1)) == (2, 3)


def test_programs_find_the_library_by_its_own_name(context: Context, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(context, out)
    (out / "libtool.so").rename(out / "libtool.so.1")
    environment = {"LD_LIBRARY_PATH": str(out)}
    assert subprocess.run([out / "show"], env=environment, check=False, timeout=10).returncode == 42


def test_a_pattern_that_finds_nothing_is_refused(context: Context, tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="declares no function that 'IMPORT' finds"):
        build(context, tmp_path / "out", declares="IMPORT")
