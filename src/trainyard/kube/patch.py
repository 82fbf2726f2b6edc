"""Patch the objects of a third-party manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.errors import TrainyardError
from .api import Object, describe


def patched(objects: Iterable[Object], patches: Sequence[Mapping[str, Any]]) -> list[Object]:
    """Return the objects of a manifest with patches merged in.

    As in Kubernetes' strategic merge, mappings are merged by key, and lists of named items by name. A null removes its
    key, and all other values are replaced.

    :param patches: each has `kind`, `name`, `patch`, and `source`, the manifest's name for errors.
    :raises TrainyardError: a patch is for an object or a container that does not exist.
    """
    result = list(objects)
    for one in patches:
        place = next((i for i, obj in enumerate(result) if _is(obj, one)), None)
        if place is None:
            raise _unknown(f"{one['kind']} {one['name']}", one["source"])
        try:
            result[place] = _merged(result[place], one["patch"])
        except KeyError as error:
            raise _unknown(f"container {error.args[0]} in {describe(result[place])}", one["source"]) from error
    return result


def _is(obj: Object, patch: Mapping[str, Any]) -> bool:
    return obj.get("kind") == patch["kind"] and (obj.get("metadata") or {}).get("name") == patch["name"]


def _unknown(what: str, source: str) -> TrainyardError:
    return TrainyardError(f"{source} has no {what}.", remedy="Use the manifest of a release that has it.")


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Object:
    both = {**below, **above}
    for key in below.keys() & above.keys():
        one, other = below[key], above[key]
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            both[key] = _merged(one, other)
        elif _named(one) and _named(other):
            both[key] = _merged_by_name(one, other, may_add=key not in ("containers", "initContainers"))
    return {key: value for key, value in both.items() if value is not None or key not in above}


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)


def _merged_by_name(below: list[Object], above: list[Object], *, may_add: bool) -> list[Object]:
    """Merge named items: existing ones keep their place, new ones are appended.

    A new container is an error, because it would have no image.
    """
    both = {item["name"]: item for item in below}
    for item in above:
        if item["name"] in both:
            both[item["name"]] = _merged(both[item["name"]], item)
        elif may_add:
            both[item["name"]] = item
        else:
            raise KeyError(item["name"])
    return list(both.values())
