"""Build a shared C library that replaces a vendor's: it has all functions that the vendor's header declares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..context import Context
from ..lock import Artefact
from ..program import run

COMPILER = ["gcc", "-O2", "-s", "-Wall", "-Werror", "-Wno-deprecated-declarations"]
TIMEOUT = 120
"""Seconds for one file."""


def library(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Compile a library, and programs that use it (kind `c_library`).

    Functions that the header declares and the source does not define are added; they return `missing_result`.
    Otherwise programs with lazy binding would exit at the first call of one.

    Recipe: `header` (reference), `declares` (pattern whose first group is a declared function's name),
    `missing_result` (int), `source` (reference), `library` (file), `soname`, `programs` (name -> reference), `files`
    (name -> reference; copied).

    :raises TrainyardError: the pattern finds no function in the header.
    """
    recipe = artefact.recipe
    header = context.resolve(recipe["header"])
    names = declared(header.read_text(encoding="utf-8"), recipe["declares"])
    if not names:
        raise TrainyardError(f"The header of {artefact.name} declares no function that {recipe['declares']!r} finds.")
    others = out / "others.c"
    others.write_text(missing(names, recipe["missing_result"]), encoding="ascii")
    path = out / recipe["library"]
    shared = ["-fPIC", "-shared", f"-Wl,-soname,{recipe['soname']}", "-ldl"]
    include = f"-I{header.parent}"
    run(
        [*COMPILER, include, str(context.resolve(recipe["source"])), str(others), *shared, "-o", str(path)],
        timeout=TIMEOUT,
    )
    others.unlink()
    for name, source in recipe.get("programs", {}).items():
        run([*COMPILER, include, str(context.resolve(source)), str(path), "-o", str(out / name)], timeout=TIMEOUT)
    context.copy(recipe.get("files", {}), out)
    return {"functions": len(names)}


def declared(header: str, pattern: str) -> list[str]:
    """Return the names of the functions that a header declares."""
    return sorted(set(re.findall(pattern, header)))


def missing(names: list[str], result: int) -> str:
    """Return C code with a weak function for each name, which a definition elsewhere overrides."""
    lines = [f"__attribute__((weak)) int {name}(void) {{ return {result}; }}" for name in names]
    return "\n".join([*lines, ""])
