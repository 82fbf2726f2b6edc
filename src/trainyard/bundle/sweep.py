"""Remove artefacts that no longer belong to an entry of the lock. This happens only on request."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from .build import image
from .build.kinds import REVISIONS
from .choose import Choice, Chooser, upstream_key
from .context import Context
from .lock import Artefact
from .store import Store

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
