"""Choose the origin of each artefact from `bundle_artifact_source`, and compute its content address.

`source` builds all artefacts from their recipes. `upstream` fetches each artefact that has an origin. `auto` fetches it
if the origin is pinned and reachable. Under `auto`, artefacts in the store are kept whatever their origin, so that a
machine without access to the vendors does not rebuild everything.
"""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import TrainyardError
from .artefact_store import Store
from .build_machine import GO_TOOLCHAIN, pinned_go
from .lockfile import VENDOR, Artefact, tree_hash
from .vendor import http as fetch

SOURCES = ("auto", "upstream", "source")
UNNAMED_GO = "1.27.3"
"""The Go version that was pinned when keys began to include it. Programs built with it keep their earlier keys.

Changed keys would give existing sites images with other digests under the same versions, which the verdict refuses."""
UPSTREAM_REVISION = 1
"""Increased if fetching produces other files from the same origin."""


@dataclass(frozen=True)
class Choice:
    """The chosen origin of one artefact.

    :param origin: "source" or "upstream".
    :param key: content address, 64 hexadecimal digits.
    :param inputs: names of the artefacts needed to make it; empty if it is fetched.
    """

    origin: str
    key: str
    inputs: frozenset[str]


class Chooser:
    """Chooses the origins of artefacts and of all their inputs.

    :param artefacts: artefacts of the whole lock.
    :param project: the repository's root, which `project:` references are relative to.
    :param revisions: revision of each builder; increasing one rebuilds its artefacts.
    :param source: one of `SOURCES`.
    :param answers: returns whether the server behind a URL answers; called once per host.
    """

    def __init__(
        self,
        artefacts: Mapping[str, Artefact],
        project: Path,
        revisions: Mapping[str, int],
        store: Store,
        source: str,
        answers: Callable[[str], bool] = fetch.answers,
    ) -> None:
        self._artefacts = artefacts
        self._project = project
        self._revisions = revisions
        self._store = store
        self._source = source
        self._answers = answers
        self._hosts: dict[str, bool] = {}
        self._unpinned: list[str] = []
        self.choices: dict[str, Choice] = {}

    def choose(self, wanted: Iterable[str]) -> dict[str, Choice]:
        """Return the choices for the requested artefacts and their inputs.

        :raises TrainyardError: an artefact must come from upstream, but its origin is not pinned.
        """
        for name in wanted:
            self._choose(name)
        if self._unpinned:
            raise TrainyardError(
                f"The lock has no hash for the upstream of {', '.join(sorted(set(self._unpinned)))}, "
                f"and bundle_artifact_source is {self._source}.",
                remedy="Pin them on a machine that reaches the vendors: "
                "ansible localhost -m include_role -a 'name=bundle tasks_from=pin', then commit bundle.lock.yml.",
            )
        return self.choices

    def _choose(self, name: str) -> Choice:
        if name not in self.choices:
            self.choices[name] = self._choice(self._artefacts[name])
        return self.choices[name]

    def _choice(self, artefact: Artefact) -> Choice:
        origin, vendors_only = artefact.origin, artefact.kind.startswith(VENDOR)
        if origin is None or (self._source == "source" and not vendors_only):
            return self._from_source(artefact)
        upstream = Choice("upstream", upstream_key(artefact), frozenset())
        if self._source == "upstream" or vendors_only:
            if not origin.pinned:
                self._unpinned.append(artefact.name)
            return upstream
        if not origin.pinned:
            return self._from_source(artefact)
        if self._store.has(artefact.name, upstream.key):
            return upstream
        source = self._from_source(artefact)
        if self._store.has(artefact.name, source.key) or not self._reaches(origin.probe):
            return source
        return upstream

    def _from_source(self, artefact: Artefact) -> Choice:
        inputs = {name: self._choose(name).key for name in sorted(artefact.inputs())}
        return Choice(
            "source", source_key(artefact, self._project, self._revisions[artefact.kind], inputs), frozenset(inputs)
        )

    def _reaches(self, url: str) -> bool:
        host = urllib.parse.urlsplit(url).netloc
        if host not in self._hosts:
            self._hosts[host] = self._answers(url)
        return self._hosts[host]


def source_key(artefact: Artefact, project: Path, revision: int, inputs: Mapping[str, str]) -> str:
    """Hash an entry's recipe, its files in the repository, its builder and its inputs' addresses."""
    document = {
        "kind": artefact.kind,
        "version": artefact.version,
        "recipe": artefact.recipe,
        "revision": revision,
        "inputs": dict(inputs),
        "files": {
            reference.path: tree_hash(project / reference.path)
            for reference in artefact.references()
            if reference.kind == "project"
        },
        **_toolchain(artefact, project),
    }
    return _hash(document)


def _toolchain(artefact: Artefact, project: Path) -> dict[str, str]:
    """Return the Go version that compiles an entry's programs; empty for `UNNAMED_GO` and for entries without any."""
    if artefact.kind != "go_programs":
        return {}
    version = pinned_go(project / GO_TOOLCHAIN)
    return {} if version == UNNAMED_GO else {"toolchain": version}


def upstream_key(artefact: Artefact) -> str:
    """Hash an entry's origin with its pin: another pin is another artefact."""
    return _hash({"upstream": artefact.upstream, "version": artefact.version, "revision": UPSTREAM_REVISION})


def _hash(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
