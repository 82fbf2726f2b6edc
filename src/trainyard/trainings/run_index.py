"""The runs of a cluster: their live objects and their records."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import TrainyardError
from ..kube.api import Api, KubeError, Object, describe
from ..kube.reads import Get, Reader, listing, must, objects, read
from .foreign_objects import is_foreign
from .names import API_VERSIONS, MANAGED, NAME_LABEL, RESULT_KEY, RUNS, result_name
from .run_state import ended, live_object

LABELS = ",".join(f"{key}={value}" for key, value in MANAGED.items())


@dataclass(frozen=True)
class Found:
    """A run in the cluster.

    :param live: the object that runs it; None if there is none.
    :param kept: its record; None if there is none.
    """

    name: str
    namespace: str
    live: Object | None
    kept: Object | None

    @property
    def goes_on(self) -> bool:
        return self.live is not None and ended(self.live) is None


def reading(namespaces: Sequence[str] = ()) -> Reader[dict[tuple[str, str], Found]]:
    """Read all runs, by namespace and name.

    :param namespaces: namespaces to search; empty for all.
    :raises KubeError: the runs cannot be read.
    """
    live: dict[tuple[str, str], Object] = {}
    kept: dict[tuple[str, str], Object] = {}
    spaces = namespaces or ("",)
    wanted = [(kind, version) for kind, version in API_VERSIONS.items() for _ in spaces]
    gets: list[Get] = [
        listing(version, f"{kind.lower()}s", space, labels=f"{LABELS},{NAME_LABEL}")
        for kind, version in API_VERSIONS.items()
        for space in spaces
    ]
    answers = yield (*gets, *(listing("v1", "configmaps", space, labels=LABELS) for space in spaces))
    for (kind, version), answer in zip(wanted, answers, strict=False):
        for obj in must(objects(answer)):
            live[obj["metadata"]["namespace"], obj["metadata"]["name"]] = {**obj, "apiVersion": version, "kind": kind}
    for answer in answers[len(wanted) :]:
        for obj in must(objects(answer)):
            if RESULT_KEY in (obj.get("data") or {}):
                name = obj["metadata"]["name"].removesuffix(result_name(""))
                kept[obj["metadata"]["namespace"], name] = obj
    places = {*live, *kept}
    return {place: Found(place[1], place[0], live.get(place), kept.get(place)) for place in sorted(places)}


def runs(api: Api) -> dict[tuple[str, str], Found]:
    """Return all runs of the cluster by namespace and name."""
    return read(api, reading())


def at(api: Api, namespace: str, name: str) -> Found:
    """Return the run of a name in a namespace.

    :raises KubeError: status 404, the run does not exist.
    :raises TrainyardError: the object is unmanaged, or is a service, which has more supporting objects than a run.
    """
    live = live_object(api, namespace, name)
    kept = api.get("v1", "ConfigMap", result_name(name), namespace)
    for obj in filter(None, (live, kept)):
        if is_foreign(obj, {**MANAGED, NAME_LABEL: name}):
            raise TrainyardError(f"{describe(obj)} does not belong to a run of trainyard.")
    if live and live["kind"] not in RUNS:
        raise TrainyardError(
            f"{name} is a service, which only a playbook can stop.",
            remedy=f"Run playbooks/train_stop.yml -e run={name} -e confirm={name}.",
        )
    if not live and not kept:
        raise KubeError(f"There is no run {name} in the namespace {namespace}.", status=404)
    return Found(name, namespace, live, kept)


def find(api: Api, name: str) -> Found:
    """Return the run of a name.

    :raises TrainyardError: no namespace or more than one has a run of this name.
    """
    return choose(runs(api), name)


def choose(there: Mapping[tuple[str, str], Found], name: str, namespace: str = "") -> Found:
    """Return the run of a name from the existing runs.

    :param namespace: its namespace; needed only if several have a run of this name.
    :raises TrainyardError: no namespace or more than one has a run of this name.
    """
    found = [each for each in there.values() if each.name == name and namespace in ("", each.namespace)]
    if len(found) == 1:
        return found[0]
    if found:
        spaces = ", ".join(each.namespace for each in found)
        raise TrainyardError(f"There are runs named {name} in several namespaces: {spaces}.")
    where = f" in the namespace {namespace}" if namespace else ""
    raise TrainyardError(f"There is no run {name}{where}.", remedy=known_names(there, name))


def known_names(there: Mapping[tuple[str, str], Found], name: str) -> str:
    """List the existing runs, and suggest the most similar name."""
    names = sorted({each.name for each in there.values()})
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    known = f"There are: {', '.join(names)}." if names else "There are no runs."
    return f"{hint}{known}"
