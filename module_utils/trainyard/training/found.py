"""Which runs a cluster has: what runs them, and what is remembered of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ..core.errors import TrainyardError
from ..kube.api import Api, Object
from .names import API_VERSIONS, MANAGED, NAME_LABEL, RESULT_KEY, result_name
from .state import ended

LABELS = ",".join(f"{key}={value}" for key, value in MANAGED.items())


@dataclass(frozen=True)
class Found:
    """What the cluster has of a run.

    :param live: the object that runs it.
    :param kept: its record.
    """

    name: str
    namespace: str
    live: Object | None
    kept: Object | None

    @property
    def goes_on(self) -> bool:
        return self.live is not None and ended(self.live) is None


def runs(api: Api) -> dict[tuple[str, str], Found]:
    """All runs of the cluster by namespace and name."""
    live: dict[tuple[str, str], Object] = {}
    kept: dict[tuple[str, str], Object] = {}
    for kind, version in API_VERSIONS.items():
        for obj in api.list(version, kind, labels=f"{LABELS},{NAME_LABEL}"):
            live[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
    for obj in api.list("v1", "ConfigMap", labels=LABELS):
        if RESULT_KEY in (obj.get("data") or {}):
            name = obj["metadata"]["name"].removesuffix(result_name(""))
            kept[obj["metadata"]["namespace"], name] = obj
    places = {*live, *kept}
    return {place: Found(place[1], place[0], live.get(place), kept.get(place)) for place in sorted(places)}


def find(api: Api, name: str) -> Found:
    """The run of a name.

    :raises TrainyardError: there is none, or one in several namespaces.
    """
    there = runs(api)
    found = [each for each in there.values() if each.name == name]
    if len(found) == 1:
        return found[0]
    names = sorted({each.name for each in there.values()})
    if found:
        spaces = ", ".join(each.namespace for each in found)
        raise TrainyardError(f"There are runs of the name {name} in several namespaces: {spaces}.")
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    known = f"There are: {', '.join(names)}." if names else "There is none at all."
    raise TrainyardError(f"There is no run {name}.", remedy=f"{hint}{known}")
