"""Build or fetch the artefacts of the lock that the store lacks, and remove old ones.

The removal covers artefacts that no longer belong to an entry of the lock. It happens only on request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.progress import Progress
from . import delivery, lockfile
from .artefact_store import Store
from .build import image
from .build.image import LAYOUT
from .build.kinds import BUILDERS, REVISIONS
from .choose import Choice, Chooser, upstream_key
from .context import Context
from .lockfile import Artefact
from .vendor.upstream import Upstream

JOBS = 2
"""Artefacts made in parallel: one computes while another waits for the network. More would compete for cores."""


class Assembly:
    """The artefacts of a lock: which of them the store holds, and how to make the others.

    Only requested artefacts are checked; their inputs are checked only if they must be made. So a complete bundle
    costs the hashing of its results, not of all intermediate artefacts.

    :param artefacts: artefacts of the whole lock, in build order.
    :param wanted: names of the requested results; None for all artefacts that are not inputs of others.
    :param source: one of `choose.SOURCES`.
    :param also: names of additional results.
    :param delivered: folder with artefacts that another machine made from recipes; then only
        artefacts with `is_made_here` are built here.
    """

    def __init__(
        self,
        artefacts: Mapping[str, lockfile.Artefact],
        wanted: Sequence[str] | None,
        store: Store,
        context: Context,
        source: str,
        also: Sequence[str] = (),
        delivered: Path | None = None,
    ) -> None:
        self.wanted = list(dict.fromkeys([*(lockfile.results(artefacts) if wanted is None else wanted), *also]))
        closure = lockfile.closure(artefacts, self.wanted)
        self.choices = Chooser(closure, context.project, REVISIONS, store, source).choose(self.wanted)
        self.artefacts = {name: artefact for name, artefact in closure.items() if name in self.choices}
        self.keys = {name: choice.key for name, choice in self.choices.items()}
        self.store = store
        self.delivered = delivered
        self.context = context
        context.previous = lambda name: next(iter(store.manifests(name)), {})
        self.upstream = Upstream(context.project, context.cache)
        self.manifests: dict[str, dict[str, Any]] = {}
        """Manifests of the existing, intact artefacts, by name; grows during the build."""
        self.missing: list[str] = self._look()

    def _look(self) -> list[str]:
        """Return the names of the artefacts that must be made, in build order."""
        missing: set[str] = set()
        seen: set[str] = set()
        todo = set(self.wanted)
        while todo:
            names = sorted(todo)
            seen |= todo
            with ThreadPoolExecutor(JOBS) as pool:
                found = dict(
                    zip(names, pool.map(lambda name: self.store.read(name, self.keys[name]), names), strict=True)
                )
            for name, manifest in found.items():
                if manifest:
                    self._have(name, manifest)
                else:
                    missing.add(name)
            todo = {needed for name in names if name in missing for needed in self._inputs(name)} - seen
        return [name for name in self.artefacts if name in missing]

    @property
    def recipes(self) -> list[str]:
        """Return the missing artefacts made from a recipe, without those that a controller with a builder makes."""
        return [name for name in self.missing if self._is_recipe(name)]

    @property
    def kinds_made_here(self) -> set[str]:
        """Return the kinds of the missing artefacts that this machine makes from a recipe."""
        made = (name for name in self.missing if self.choices[name].origin == "source" and not self._is_delivered(name))
        return {self.artefacts[name].kind for name in made}

    def _is_recipe(self, name: str) -> bool:
        made_here = self.delivered is not None and self.artefacts[name].is_made_here
        return self.choices[name].origin == "source" and not made_here

    def _is_delivered(self, name: str) -> bool:
        return self.delivered is not None and self._is_recipe(name)

    def _inputs(self, name: str) -> frozenset[str]:
        """Return the artefacts that must exist before this one is made."""
        return frozenset() if self._is_delivered(name) else self.choices[name].inputs

    def _have(self, name: str, manifest: dict[str, Any]) -> None:
        self.context.made[name] = self.store.path(name, self.keys[name])
        self.manifests[name] = manifest

    def build_missing(self, progress: Progress, prepare: Callable[[], object] = bool) -> None:
        """Make all missing artefacts, inputs first, two in parallel.

        :param prepare: called first, while no other run builds.
        :raises TrainyardError: the first failure, after the parallel job has ended; finished artefacts are kept.
        """
        with self.store.locked(lambda: progress.say("Waiting for another run of the bundle")):
            prepare()
            self._build_all(progress)

    def _build_all(self, progress: Progress) -> None:
        todo = list(self.missing)
        total = len(todo)
        running: dict[Future[tuple[dict[str, Any], float]], str] = {}
        failure: BaseException | None = None
        with ThreadPoolExecutor(JOBS) as pool:
            while running or (todo and failure is None):
                ready = [name for name in todo if self._inputs(name) <= set(self.manifests)]
                for name in ready[: JOBS - len(running)] if failure is None else []:
                    todo.remove(name)
                    progress.say(f"{self._label(name)}: started")
                    running[pool.submit(self._build, name)] = name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    name = running.pop(future)
                    failure = failure or _named(name, future.exception())
                    if future.exception() is None:
                        manifest, seconds = future.result()
                        # Not in the worker thread, so that dependents start only after this progress line.
                        self._have(name, manifest)
                        left = len(todo) + len(running)
                        progress.say(f"{self._label(name)}: {seconds:.0f} s ({total - left} of {total}, {left} left)")
        if failure is not None:
            raise failure

    def _label(self, name: str) -> str:
        origin = " from upstream" if self.choices[name].origin == "upstream" else ""
        return f"{name} {self.artefacts[name].version}{origin}"

    def _build(self, name: str) -> tuple[dict[str, Any], float]:
        """Make an artefact and return its manifest and the duration in seconds."""
        started = time.monotonic()
        artefact, key = self.artefacts[name], self.keys[name]
        origin = self.choices[name].origin

        def build(out: Path) -> dict[str, Any]:
            if self.delivered and self._is_delivered(name):
                return delivery.unpack(self.delivered, name, key, out)
            facts = (
                self.upstream.fetch(artefact, out)
                if origin == "upstream"
                else BUILDERS[artefact.kind][1](artefact, out, self.context)
            )
            return {
                "version": artefact.version,
                "kind": artefact.product,
                "origin": origin,
                **facts,
                "seconds": round(time.monotonic() - started, 1),
            }

        # Another run may have made the artefact while this one waited for the lock.
        manifest = self.store.read(name, key) or self.store.add(name, key, build)
        return manifest, time.monotonic() - started

    def result(self) -> dict[str, dict[str, Any]]:
        """Return path, version, key, origin and facts of each requested artefact.

        Intermediate artefacts are left out, because a run that makes nothing does not read them. A `layout` becomes an
        absolute path. Long lists stay in the store's manifests. An artefact that does not exist yet, as in check mode,
        has its future path and the lock's data; an unknown digest is all zeros.
        """
        missing = (name for name in self.missing if name in self.wanted)
        result: dict[str, dict[str, Any]] = {name: self._future(name) for name in missing}
        for name, manifest in self.manifests.items():
            if name not in self.wanted:
                continue
            path = self.store.path(name, self.keys[name])
            facts = {key: value for key, value in manifest.items() if key not in ("files", "name", "resolved")}
            if "layout" in facts:
                facts["layout"] = str(path / facts["layout"])
            result[name] = {"path": str(path), "origin": self.choices[name].origin, **facts}
        return result

    def _future(self, name: str) -> dict[str, Any]:
        artefact = self.artefacts[name]
        path = self.store.path(name, self.keys[name])
        facts = {"path": str(path), "kind": artefact.product, "version": artefact.version, "key": self.keys[name]}
        if artefact.product == "image":
            reference = artefact.recipe["reference"].format(version=artefact.version)
            facts |= {"reference": reference, "layout": str(path / LAYOUT), "digest": f"sha256:{'0' * 64}"}
        elif artefact.kind == "apt_repository":
            facts |= {"suite": artefact.recipe["suite"], "component": artefact.recipe["component"]}
        return facts


def _named(name: str, error: BaseException | None) -> BaseException | None:
    if isinstance(error, TrainyardError):
        return TrainyardError(
            f"The artefact {name} cannot be made: {error.message}", remedy=error.remedy, **error.facts
        )
    return error


DAY = 86400


def current(artefacts: Mapping[str, Artefact], project: Path, store: Store, chosen: Mapping[str, Choice]) -> set[Path]:
    """Return the folders of all artefacts that the lock describes, from either origin, requested or not."""
    choices = Chooser(artefacts, project, REVISIONS, store, "source").choose(artefacts)
    paths = {store.path(name, choice.key) for name, choice in [*choices.items(), *chosen.items()]}
    return paths | {store.path(name, upstream_key(artefact)) for name, artefact in artefacts.items()}


def stale(store: Store, keep: Iterable[Path], days: int, now: float | None = None) -> list[Path]:
    """Return artefact folders and unfinished downloads that are not in `keep` and are older than `days`.

    :param now: seconds since the epoch.
    """
    limit = (time.time() if now is None else now) - days * DAY
    found = [path for path in store.folder.glob("*-*") if path.is_dir()] if store.folder.is_dir() else []
    found += list((store.root / "downloads").glob("*"))
    return sorted(path for path in set(found) - set(keep) if path.stat().st_mtime < limit)


def remove(paths: Iterable[Path], store: Store, context: Context) -> None:
    """Remove folders, and unused layers in the builds' storage."""
    for path in paths:
        store.remove(path)
    image.prune(context)
