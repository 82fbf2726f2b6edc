"""The lock file: which artefacts there are, at which versions, from which origins, made by which recipes.

An artefact names its inputs as references: `artefact:NAME/PATH` for a file that another artefact makes and
`project:PATH` for a file or folder of this repository. The references are the edges of the build graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.trainyard.errors import TrainyardError

SCHEMA = 1
DESCRIPTIVE = ("upstream", "comment")
"""Keys of an entry that do not change what its recipe makes from source."""


@dataclass(frozen=True)
class Reference:
    """An input of a recipe: `kind` is "artefact" (then `artefact` is its name) or "project"; `path` is relative."""

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
    :param version: as its origin spells it ("v1.36.3").
    :param recipe: the entry's remaining keys, as the builder of that kind documents them.
    :param upstream: where the vendor publishes the finished artefact, or an empty mapping.
    """

    name: str
    kind: str
    version: str
    recipe: Mapping[str, Any]
    upstream: Mapping[str, Any]

    def references(self) -> Iterator[Reference]:
        """Every input named anywhere in the recipe."""
        for text in _strings(self.recipe):
            if text.startswith(("artefact:", "project:")):
                yield Reference.parse(text)

    def inputs(self) -> set[str]:
        """Names of the artefacts that must exist before this one can be made."""
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
    artefacts = {name: _artefact(name, entry) for name, entry in document["artefacts"].items()}
    return {name: artefacts[name] for name in _ordered(artefacts)}


def _artefact(name: str, entry: dict[str, Any]) -> Artefact:
    missing = {"kind", "version"} - set(entry)
    if missing or not str(entry.get("version", "")).strip():
        raise TrainyardError(
            f"The lock's entry {name} has no {', '.join(sorted(missing)) or 'version'}.",
            remedy="Every artefact is pinned: give the exact version.",
        )
    recipe = {key: value for key, value in entry.items() if key not in ("kind", "version", *DESCRIPTIVE)}
    return Artefact(name, entry["kind"], str(entry["version"]), recipe, entry.get("upstream", {}))


def _ordered(artefacts: Mapping[str, Artefact]) -> list[str]:
    """Names in build order (depth first), inputs before their users."""
    done: list[str] = []
    path: list[str] = []

    def visit(name: str, user: str) -> None:
        if name in done:
            return
        if name not in artefacts:
            raise TrainyardError(f"The lock's entry {user} needs {name}, which the lock does not have.")
        if name in path:
            raise TrainyardError(f"The lock's entries need each other in a circle: {' -> '.join([*path, name])}.")
        path.append(name)
        for needed in sorted(artefacts[name].inputs()):
            visit(needed, name)
        path.pop()
        done.append(name)

    for name in artefacts:
        visit(name, name)
    return done


def results(artefacts: Mapping[str, Artefact]) -> list[str]:
    """Names of the artefacts that nothing else in the lock is made from: what a site uses."""
    used = {needed for artefact in artefacts.values() for needed in artefact.inputs()}
    return [name for name in artefacts if name not in used]


def closure(artefacts: Mapping[str, Artefact], wanted: Iterable[str]) -> dict[str, Artefact]:
    """The wanted artefacts and everything they are made from, in build order.

    :raises TrainyardError: a wanted name is not in the lock.
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


def keys(artefacts: Mapping[str, Artefact], project: Path, revisions: Mapping[str, int], source: str) -> dict[str, str]:
    """The content address of every artefact: a hash of its entry, its recipe's files and its inputs' addresses.

    :param artefacts: in build order, as `load` and `closure` return them.
    :param project: the repository's root, which `project:` references are relative to.
    :param revisions: revision of each builder; raising one rebuilds what that builder makes.
    :param source: "source" or "upstream": the two ways give different bytes.
    :returns: name -> 64 hexadecimal digits.
    """
    result: dict[str, str] = {}
    for name, artefact in artefacts.items():
        document = {
            "kind": artefact.kind,
            "version": artefact.version,
            "recipe": artefact.recipe,
            "revision": revisions[artefact.kind],
            "inputs": {needed: result[needed] for needed in sorted(artefact.inputs())},
            "files": {
                reference.path: tree_hash(project / reference.path)
                for reference in artefact.references()
                if reference.kind == "project"
            },
        }
        if artefact.upstream and source == "upstream":
            document = {"upstream": artefact.upstream, "version": artefact.version}
        result[name] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return result


IGNORED = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
"""By-products of tests in folders that recipes copy."""


def tree_files(path: Path) -> list[Path]:
    """The files of a file or folder, sorted, without by-products of tests."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TrainyardError(f"The recipe's input {path} does not exist.")
    return sorted(
        found for found in path.rglob("*") if found.is_file() and not set(found.relative_to(path).parts) & set(IGNORED)
    )


def tree_hash(path: Path) -> str:
    """SHA-256 over the names, executable bits and contents of a file or folder."""
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
