"""The lock file: all artefacts with their versions, origins and recipes.

Inputs of an artefact are references: `artefact:NAME/PATH` for a file of another artefact, and `project:PATH` for a file
or folder of this repository. The references are the edges of the build graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from ..core.errors import TrainyardError
from ..oci import code_folder
from .origin import Origin, parse

SCHEMA = 1
DESCRIPTIVE = ("upstream", "comment")
"""Keys of an entry that do not affect a build from source."""

REQUIRED = {
    "go_programs": ("wrapper", "programs"),
    "go_module_files": ("wrapper", "module"),
    "deb": ("package", "files"),
    "debian_packages": ("suites", "components", "packages"),
    "apt_repository": ("suite", "component", "packages"),
    "python_wheels": ("requirements", "python", "platforms"),
    "npm_files": ("package", "integrity", "files"),
    "c_program": ("source", "program"),
    "c_library": ("header", "declares", "missing_result", "source", "library", "soname"),
    "rootfs": ("suites", "packages"),
    "program_output": ("rootfs", "program"),
    "disk": ("rootfs",),
    "image": ("reference", "containerfile"),
    "code": ("reference", "folder"),
    "archive": ("file", "files"),
    "vendor_image": ("reference", "upstream"),
    "vendor_files": ("upstream",),
}
"""The kinds, and the required keys of their recipes, including those that pin the downloads of a recipe."""
VENDOR = "vendor_"
"""Prefix of the kinds with an origin but no recipe: they are fetched, and only if requested by name."""
BY_NAME = (VENDOR, "disk")
"""Prefixes of the kinds that only some sites need: they are made only if requested by name."""


@dataclass(frozen=True)
class Reference:
    """An input of a recipe: `kind` is "artefact" (with its name in `artefact`) or "project"; `path` is relative."""

    kind: str
    artefact: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        kind, _, rest = text.partition(":")
        if kind == "project":
            return cls(kind, "", rest)
        name, _, path = rest.partition("/")
        return cls(kind, name, path)


@dataclass(frozen=True)
class Artefact:
    """One entry of the lock.

    :param kind: name of the builder.
    :param version: in the spelling of its origin ("v1.36.3").
    :param recipe: the entry's remaining keys, documented by the builder of its kind.
    :param upstream: the vendor's publication of the finished artefact, as written in the lock, or an empty mapping.
    :param origin: the same, validated, or None.
    """

    name: str
    kind: str
    version: str
    recipe: Mapping[str, Any]
    upstream: Mapping[str, Any]
    origin: Origin | None

    @property
    def product(self) -> str:
        """Return the kind of the result, independent of its origin: a vendor's image or a code image is an `image`."""
        return "image" if self.kind == "code" else self.kind.removeprefix(VENDOR)

    @property
    def is_made_here(self) -> bool:
        """Return whether the controller makes it even if it has a builder.

        Code needs neither programs nor root. A program with `on_controller` runs on the controller, which must not run
        what a host of the site has made.
        """
        return self.kind == "code" or bool(self.recipe.get("on_controller"))

    def references(self) -> Iterator[Reference]:
        """Yield all references in the recipe."""
        for text in _strings(self.recipe):
            if text.startswith(("artefact:", "project:")):
                yield Reference.parse(text)

    def inputs(self) -> set[str]:
        """Return the names of the artefacts that must exist before this one can be made."""
        return {reference.artefact for reference in self.references() if reference.kind == "artefact"}


def load(path: str | Path) -> dict[str, Artefact]:
    """Read and check a lock file.

    :returns: artefacts by name, each after its inputs.
    :raises TrainyardError: unreadable, another schema, an unpinned entry, an unknown input or a cycle.
    """
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"The lock file {path} cannot be read: {error}.") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise TrainyardError(f"The lock file {path} does not have schema {SCHEMA}.")
    entries = document.get("artefacts")
    if not isinstance(entries, dict):
        raise TrainyardError(f"The lock file {path} has no artefacts.")
    artefacts = {name: _artefact(name, entry) for name, entry in entries.items()}
    return {name: artefacts[name] for name in _ordered(artefacts)}


def _artefact(name: str, entry: Any) -> Artefact:
    if not isinstance(entry, dict):
        raise TrainyardError(f"The lock's entry {name} is not a mapping.")
    kind, version = entry.get("kind"), entry.get("version")
    missing = [
        key for key in ("kind", "version", *REQUIRED.get(str(kind), ())) if not str(entry.get(key) or "").strip()
    ]
    if missing:
        raise TrainyardError(
            f"The lock's entry {name} has no {', '.join(missing)}.",
            remedy="Set the exact version, and the hashes that its kind requires.",
        )
    if kind not in REQUIRED:
        raise TrainyardError(
            f"The lock's entry {name} has the unknown kind {kind}.", remedy=f"Set one of {', '.join(REQUIRED)}."
        )
    if not isinstance(version, str):
        raise TrainyardError(
            f"The version of the lock's entry {name} is read as the number {version}.", remedy="Put it in quotes."
        )
    recipe = {key: value for key, value in entry.items() if key not in ("kind", "version", *DESCRIPTIVE)}
    upstream = entry.get("upstream") or {}
    return Artefact(name, kind, version, recipe, upstream, parse(name, version, recipe, upstream))


def _ordered(artefacts: Mapping[str, Artefact]) -> list[str]:
    """Return the names in build order (depth first), inputs before their users."""
    done: list[str] = []
    path: list[str] = []

    def visit(name: str, user: str) -> None:
        if name in done:
            return
        if name not in artefacts:
            raise TrainyardError(f"The lock's entry {user} needs {name}, which the lock does not have.")
        if name in path:
            raise TrainyardError(f"The lock's entries depend on each other in a cycle: {' -> '.join([*path, name])}.")
        path.append(name)
        for needed in sorted(artefacts[name].inputs()):
            visit(needed, name)
        path.pop()
        done.append(name)

    for name in artefacts:
        visit(name, name)
    return done


def results(artefacts: Mapping[str, Artefact]) -> list[str]:
    """Return the names of the artefacts that all sites need and that are not inputs of others.

    Artefacts with `on_demand` are made only if requested, and do not count as users of their inputs.
    """
    usual = {name: artefact for name, artefact in artefacts.items() if not artefact.recipe.get("on_demand")}
    used = {needed for artefact in usual.values() for needed in artefact.inputs()}
    return [name for name, artefact in usual.items() if name not in used and not artefact.kind.startswith(BY_NAME)]


def closure(artefacts: Mapping[str, Artefact], wanted: Iterable[str]) -> dict[str, Artefact]:
    """Return the requested artefacts and all their inputs, in build order.

    :raises TrainyardError: a requested name is not in the lock.
    """
    needed: set[str] = set()
    todo = list(wanted)
    while todo:
        name = todo.pop()
        if name not in artefacts:
            raise TrainyardError(f"The lock has no artefact {name}.", remedy=f"It has: {', '.join(sorted(artefacts))}.")
        if name not in needed:
            needed.add(name)
            todo.extend(artefacts[name].inputs())
    return {name: artefact for name, artefact in artefacts.items() if name in needed}


IGNORED_FOLDERS = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
IGNORED_ENDINGS = ("_test.py", ".md")
"""Tests, caches and documentation next to code that recipes copy; they are not part of artefacts."""


def tree_files(path: Path) -> list[Path]:
    """Return the files of a path, sorted, without tests, documentation and files that its `.trainignore` excludes."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TrainyardError(f"The recipe's input {path} does not exist.")
    rules = code_folder.read_ignore(path)
    below = ((found, found.relative_to(path)) for found in path.rglob("*") if found.is_file())
    return sorted(found for found, name in below if not _ignored(name) and not rules.leaves_out(PurePosixPath(name)))


def _ignored(path: Path) -> bool:
    return path.name.endswith(IGNORED_ENDINGS) or not set(path.parts).isdisjoint(IGNORED_FOLDERS)


def tree_hash(path: Path) -> str:
    """Return the SHA-256 over the names, executable bits and contents of a file or folder."""
    digest = hashlib.sha256()
    for found in tree_files(path):
        name = str(found.relative_to(path)) if path.is_dir() else ""
        digest.update(f"{name}\0{found.stat().st_mode & 0o100:o}\0".encode())
        digest.update(hashlib.sha256(found.read_bytes()).digest())
    return digest.hexdigest()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
