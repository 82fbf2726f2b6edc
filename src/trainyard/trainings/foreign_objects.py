"""Objects of users whose names are those of a run's objects: they are never changed or deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import Object, describe
from .names import MANAGED

REMEDY = "Set another name (run), or delete that object."


def is_foreign(obj: Mapping[str, Any], ours: Mapping[str, str] = MANAGED) -> bool:
    """Return whether an object lacks a label of ours.

    :param ours: the labels; by default the one that all objects of ours have.
    """
    labels = obj["metadata"].get("labels") or {}
    return bool(ours.items() - labels.items())


def refuse_foreign(*there: Object | None) -> None:
    """Refuse to take objects for those of a run that a user created.

    :param there: existing objects with their kind; None for a missing one.
    :raises TrainyardError: names all foreign ones.
    """
    foreign = [describe(obj) for obj in there if obj is not None and is_foreign(obj)]
    if foreign:
        names = ", ".join(sorted(foreign))
        verb = "exists, but was" if len(foreign) == 1 else "exist, but were"
        raise TrainyardError(f"{names} {verb} not created by trainyard.", remedy=REMEDY)


def guard(live: Sequence[Object]) -> None:
    """Refuse foreign objects in place of a run's supporting objects; a namespace may be a user's.

    :raises TrainyardError: as `refuse_foreign`.
    """
    refuse_foreign(*(obj for obj in live if obj["kind"] != "Namespace"))
