"""Removing artefacts that no entry of the lock makes any more. Never done unless it is asked for."""

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
    """Folders of everything that the lock describes, made from source or fetched, asked for or not."""
    choices = Chooser(artefacts, project, REVISIONS, store, "source").choose(artefacts)
    paths = {store.path(name, choice.key) for name, choice in [*choices.items(), *chosen.items()]}
    return paths | {store.path(name, upstream_key(artefact)) for name, artefact in artefacts.items()}


def stale(store: Store, keep: Iterable[Path], days: int, now: float | None = None) -> list[Path]:
    """Folders of the store, and unfinished downloads, that are not to be kept and were made more than `days` ago.

    :param now: seconds since the epoch.
    """
    limit = (time.time() if now is None else now) - days * DAY
    found = [path for path in store.folder.glob("*-*") if path.is_dir()] if store.folder.is_dir() else []
    found += list((store.root / "downloads").glob("*"))
    return sorted(path for path in set(found) - set(keep) if path.stat().st_mtime < limit)


def remove(paths: Iterable[Path], store: Store, context: Context) -> None:
    """Remove folders, and the layers in the builds' storage that no image has any more."""
    for path in paths:
        store.remove(path)
    image.prune(context)
