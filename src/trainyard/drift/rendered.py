"""The record of rendered objects. Only objects in it belong to the site; labels of an object prove nothing.

The record is a file on the controller next to the kubeconfig. A user who can write there has the kubeconfig, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..core import files
from ..core.errors import TrainyardError
from ..core.lock import locked
from ..core.plan import Plan, Step
from ..core.untrusted import items, mapping
from ..kube.api import Object, describe
from .holds import ANY_PORT, doors_of
from .rights import Key, key_of, referred, subjects_of, words_of

SCHEMA = 2
SUFFIX = ".rendered.json"
LOCK = ".lock"
SECONDS = 60.0
"""Limit of the wait for another run that writes the record, which takes milliseconds."""
MODE = 0o600
ROLES = ("Role", "ClusterRole")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")


@dataclass(frozen=True)
class Rendered:
    """The objects that runs of this controller have rendered.

    :param parts: names of the recorded parts, as given to `kube_apply`.
    :param objects: `KIND NAMESPACE/NAME` -> recorded data of the object.
    """

    parts: frozenset[str]
    objects: Mapping[str, Mapping[str, Any]]

    def opens(self, obj: Object, owner: Object | None = None) -> list[str]:
        """Return the doors of an object that no run renders.

        :param owner: the object that controls it and was read; None or itself if there is none.
        """
        rendered = items(mapping(self.objects.get(describe(owner or obj))).get("doors"))
        return [each for each in doors_of(obj) if each not in rendered and _chosen(each) not in rendered]

    def binds(self, binding: Object) -> bool:
        """Return whether a run renders this binding with exactly this role and these subjects."""
        return self.objects.get(describe(binding)) == _given(binding)

    def rules(self, role: Key) -> Sequence[Any] | None:
        """Return the rules that a run renders for a role; None for a role that no run renders."""
        kept = self.objects.get(words_of(role))
        return None if kept is None else items(kept.get("rules"))


def _given(binding: Object) -> dict[str, Any]:
    """Return the recorded data of a binding: raw and in lists, in the form that JSON returns."""
    return {"role": [*referred(binding)], "subjects": [[*each] for each in subjects_of(binding)]}


def _chosen(door: str) -> str:
    """Return a door as it was rendered if the API server chose its port."""
    return f"{door.partition(' ')[0]} {ANY_PORT}"


def path_of(kubeconfig: str) -> str:
    """Return the path of the record for the cluster of a kubeconfig."""
    return f"{kubeconfig}{SUFFIX}"


def read(kubeconfig: str) -> Rendered:
    """Return the record; an empty one if it is missing or unreadable."""
    parts = _parts(path_of(kubeconfig))
    return Rendered(frozenset(parts), {name: kept for part in parts.values() for name, kept in part.items()})


def kept_of(objects: Iterable[Object]) -> dict[str, dict[str, Any]]:
    """Return the recorded data of rendered objects: rights and doors, without secrets."""
    found: dict[str, dict[str, Any]] = {}
    for obj in objects:
        kind, name = obj.get("kind"), describe(obj)
        if kind in BINDINGS:
            found[name] = _given(obj)
        elif kind in ROLES:
            meta = obj["metadata"]
            found[words_of(key_of(kind, meta["name"], meta.get("namespace")))] = {"rules": obj.get("rules") or []}
        elif doors := doors_of(obj):
            found[name] = {"doors": doors}
    return dict(sorted(found.items()))


def plan_record(kubeconfig: str, part: str, objects: Sequence[Object], *, more: bool = False) -> Plan:
    """Return the plan to record the rendered objects of a part, empty if the record is up to date.

    :param part: name of the part; its previous record is replaced.
    :param more: whether to keep the previous record of the part, because this call renders only some of its objects.
    :raises TrainyardError: the file cannot be written, on execution of the plan.
    """
    path, kept = path_of(kubeconfig), kept_of(objects)
    parts = _parts(path)
    wanted = _wanted(parts, part, kept, more)
    if parts.get(part) == wanted:
        return Plan()
    subject = f"record of what {part} renders"
    step = Step(f"Write the {subject}: {path}", partial(_write, path, part, kept, more))
    return Plan([step], {subject: sorted(parts[part]) if part in parts else "missing"}, {subject: sorted(wanted)})


def _wanted(parts: Mapping[str, Any], part: str, kept: Mapping[str, Any], more: bool) -> dict[str, Any]:
    return {**(parts.get(part, {}) if more else {}), **kept}


def _write(path: str, part: str, kept: Mapping[str, Any], more: bool) -> None:
    # Two runs may write at the same time. Each reads the other's record under the lock, so no part is lost.
    try:
        Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with locked(Path(f"{path}{LOCK}"), what="another run to write the record", timeout=SECONDS):
            parts = _parts(path)
            parts[part] = _wanted(parts, part, kept, more)
            document = {"schema": SCHEMA, "parts": dict(sorted(parts.items()))}
            files.write(path, json.dumps(document, indent=1) + "\n", MODE)
    except OSError as error:
        raise TrainyardError(f"{path}{LOCK} cannot be written: {error.strerror}.") from error


def _parts(path: str) -> dict[str, dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    if mapping(found).get("schema") != SCHEMA:
        return {}
    return {str(name): dict(mapping(part)) for name, part in mapping(found.get("parts")).items()}


def missing_parts(rendered: Rendered, parts: Iterable[str]) -> list[str]:
    """Return the sorted parts of a site that no run has recorded yet."""
    return sorted(set(parts) - rendered.parts)
