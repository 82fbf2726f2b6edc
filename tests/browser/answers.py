"""What an API server answers to a GET, from a world: objects, lists, tables, kinds and logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.browser.world import Object, World

COLLECTION = re.compile(r"/(api/v1|apis/[^/]+/[^/]+)(/namespaces/[^/]+)?/(?!namespaces/)[^/]+")
LABELS = re.compile(r"([a-zA-Z0-9./-]+)(?: in \(([^)]*)\)|=([^,]*))?(?:,|$)")
CLUSTER_WIDE = {"nodes", "namespaces", "persistentvolumes"}


def answer(world: World, path: str, query: Mapping[str, str], accept: str = "") -> tuple[int, Any]:
    """Status and JSON, or text for a log."""
    if path in ("/api", "/apis"):
        return 200, kinds(world, core=path == "/api")
    if path == "/version":
        return 200, {"gitVersion": "v1.36.1", "platform": "linux/amd64"}
    if path.endswith("/log"):
        text = world.texts.get(path.removesuffix("/log"), "")
        lines = text.splitlines(keepends=True)
        return 200, "".join(lines[-int(query.get("tailLines", len(lines) or 1)) :])
    if path in world.objects:
        return 200, world.objects[path]
    if not COLLECTION.fullmatch(path):
        return 404, {"message": f"{path.split('/')[-2]} {path.rpartition('/')[2]!r} not found"}
    found = [each for at, each in world.objects.items() if listed(at, path)]
    found = [each for each in found if selected(each, query)]
    if "as=Table" in accept:
        return 200, table(found)
    kind = found[0]["kind"] if found else ""
    return 200, {
        "apiVersion": found[0]["apiVersion"] if found else "v1",
        "kind": f"{kind}List",
        "items": found,
        "metadata": {},
    }


def listed(at: str, path: str) -> bool:
    """Whether an object at a path is in the list of a collection, of one namespace or of all."""
    collection = at.rpartition("/")[0]
    if collection == path:
        return True
    before, _, rest = collection.partition("/namespaces/")
    return bool(rest) and "/" in rest and f"{before}/{rest.partition('/')[2]}" == path


def selected(found: Object, query: Mapping[str, str]) -> bool:
    """Whether the selectors of a list take an object: labels by `name`, `name=value` and `name in (a,b)`."""
    labels, about = found["metadata"].get("labels") or {}, found.get("involvedObject") or {}
    for name, values, value in LABELS.findall(query.get("labelSelector", "")):
        if name not in labels or ((values or value) and labels[name] not in (values or value).split(",")):
            return False
    fields = dict(part.split("=") for part in filter(None, query.get("fieldSelector", "").split(",")))
    mine = {key.removeprefix("involvedObject."): value for key, value in fields.items()}
    return all(about.get(key) == value for key, value in mine.items())


def table(found: list[Object]) -> Object:
    columns = [
        {"name": "Name", "type": "string", "priority": 0},
        {"name": "Age", "type": "string", "priority": 0},
        {"name": "Wide", "type": "string", "priority": 1},
    ]
    rows = [
        {"cells": [each["metadata"]["name"], "10m", "x"], "object": {"metadata": each["metadata"]}} for each in found
    ]
    return {"kind": "Table", "metadata": {}, "columnDefinitions": columns, "rows": rows}


def kinds(world: World, *, core: bool) -> Object:
    groups: dict[str, dict[str, Object]] = {}
    for at, each in world.objects.items():
        group, _, version = each["apiVersion"].rpartition("/")
        if bool(group) != core:
            plural = at.split("/")[-2]
            scope = "Cluster" if plural in CLUSTER_WIDE else "Namespaced"
            groups.setdefault(f"{group} {version}", {})[plural] = {
                "resource": plural,
                "responseKind": {"kind": each["kind"]},
                "scope": scope,
                "verbs": ["get", "list"],
            }
    items = [
        {
            "metadata": {"name": key.split(" ")[0]},
            "versions": [{"version": key.split(" ")[1], "resources": list(each.values())}],
        }
        for key, each in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}
