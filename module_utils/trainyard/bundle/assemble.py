"""Bringing the store to the state that the lock describes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ansible.module_utils.trainyard.bundle import lock
from ansible.module_utils.trainyard.bundle.builders import BUILDERS, REVISIONS
from ansible.module_utils.trainyard.bundle.context import Context
from ansible.module_utils.trainyard.bundle.store import Store
from ansible.module_utils.trainyard.errors import TrainyardError
from ansible.module_utils.trainyard.progress import Progress

JOBS = 2
"""Artefacts made at a time: one that computes beside one that waits for the network. More only compete for cores."""


class Assembly:
    """The artefacts of a lock, what of them the store already holds, and the building of the rest.

    Only what is asked for is looked at, and what it is made from only where it has to be made again: a bundle that is
    there costs the hashing of its results, not of every step on the way to them.

    :param artefacts: of the whole lock, in build order.
    :param wanted: names of the results that are asked for; all that nothing else is made from when empty.
    """

    def __init__(
        self, artefacts: Mapping[str, lock.Artefact], wanted: Sequence[str], store: Store, context: Context, source: str
    ) -> None:
        self.wanted = list(wanted) or lock.results(artefacts)
        self.artefacts = lock.closure(artefacts, self.wanted)
        self.store = store
        self.context = context
        self.keys = lock.keys(self.artefacts, context.project, REVISIONS, source)
        self.manifests: dict[str, dict[str, Any]] = {}
        """Of the artefacts that are there and intact, by name; grows while building."""
        self.missing: list[str] = self._look()

    def _look(self) -> list[str]:
        """Names that have to be made, in build order."""
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
            todo = {needed for name in names if name in missing for needed in self.artefacts[name].inputs()} - seen
        return [name for name in self.artefacts if name in missing]

    def _have(self, name: str, manifest: dict[str, Any]) -> None:
        self.context.made[name] = self.store.path(name, self.keys[name])
        self.manifests[name] = manifest

    def build_missing(self, progress: Progress) -> None:
        """Make every missing artefact, inputs first, two at a time.

        :raises TrainyardError: the first failure, after what ran beside it has ended; what was made stays.
        """
        todo = list(self.missing)
        total = len(todo)
        running: dict[Future[float], str] = {}
        failure: BaseException | None = None
        with ThreadPoolExecutor(JOBS) as pool:
            while running or (todo and failure is None):
                for name in list(todo):
                    if failure is None and len(running) < JOBS and self.artefacts[name].inputs() <= set(self.manifests):
                        todo.remove(name)
                        progress.say(f"{name} {self.artefacts[name].version}: started")
                        running[pool.submit(self._build, name)] = name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    name = running.pop(future)
                    failure = failure or _named(name, future.exception())
                    if future.exception() is None:
                        left = len(todo) + len(running)
                        progress.say(
                            f"{name} {self.artefacts[name].version}: {future.result():.0f} s ({total - left} of {total}, {left} left)"
                        )
        if failure is not None:
            raise failure

    def _build(self, name: str) -> float:
        started = time.monotonic()
        artefact = self.artefacts[name]
        _, builder = BUILDERS[artefact.kind]

        def build(out: Path) -> dict[str, Any]:
            facts = builder(artefact, out, self.context)
            return {
                "version": artefact.version,
                "kind": artefact.kind,
                **facts,
                "seconds": round(time.monotonic() - started, 1),
            }

        manifest = self.store.add(name, self.keys[name], build)
        self._have(name, manifest)
        return time.monotonic() - started

    def result(self) -> dict[str, dict[str, Any]]:
        """What users of the bundle need to know of each artefact that is there: path, version, key and facts.

        Where the facts hold a `layout`, it is made an absolute path.
        """
        result = {}
        for name, manifest in self.manifests.items():
            path = self.store.path(name, self.keys[name])
            facts = {key: value for key, value in manifest.items() if key not in ("files", "name")}
            if "layout" in facts:
                facts["layout"] = str(path / facts["layout"])
            result[name] = {"path": str(path), **facts}
        return result


def _named(name: str, error: BaseException | None) -> BaseException | None:
    if isinstance(error, TrainyardError):
        return TrainyardError(
            f"The artefact {name} cannot be made: {error.message}", remedy=error.remedy, **error.facts
        )
    return error
