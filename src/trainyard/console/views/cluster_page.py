"""Pages of the cluster: its kinds, the objects of a kind, and one object.

The objects of a kind appear as the table of the API server. One object appears as readable YAML. Plain JSON values are
enough for that, so the console's image needs no YAML library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...kube.api import KubeError, Object
from ...kube.reads import Get, Reader, Unread, listing, must, objects, path
from .events import events
from .page import Page, Params
from .runs_page import SPACES
from .words import link

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""Words that are no text in YAML 1.1."""


def text(value: Any) -> str:
    """Return a document that ends with a line break."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _entry(f"{_scalar(str(key))}:", each)
    elif isinstance(value, list) and value:
        for each in value:
            inner = list(_lines(each))
            yield f"- {inner[0]}"
            yield from (f"  {line}" if line else "" for line in inner[1:])
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield key
        # A list below a key has no indent, as in the output of kubectl.
        indent = "  " if isinstance(value, dict) else ""
        yield from (f"{indent}{line}" if line else "" for line in _lines(value))
    elif isinstance(value, str) and _block(value):
        yield f"{key} |" + ("" if value.endswith("\n") else "-")
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{key} {_scalar(value)}"


def _block(value: str) -> bool:
    """Return whether a text can be a block scalar: several printable lines that YAML would not change."""
    lines = value.removesuffix("\n").split("\n")
    good = all(line == line.rstrip() and (not line or line.isprintable()) for line in lines)
    return len(lines) > 1 and bool(lines[0]) and bool(lines[-1]) and not lines[0].startswith(" ") and good


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CORE = "core"
"""Name in paths for the group without a name."""
LIMIT = 500
"""Objects per page."""
USUAL = (
    ("Workloads", ("pods", "jobs", "jobsets", "deployments", "daemonsets", "statefulsets")),
    ("Storage", ("persistentvolumeclaims", "persistentvolumes", "storageclasses")),
    ("Configuration", ("configmaps", "resourcequotas", "limitranges")),
    ("Network", ("services", "networkpolicies", "endpointslices")),
    ("Cluster", ("nodes", "namespaces", "events", "leases")),
)
_NOISE = ("managedFields",)
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")
"""Part of a path: a name of an object or of a kind, never `..`."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class One:
    """The data of one object.

    :param said: its events, or why they could not be read.
    """

    found: Object
    said: list[Object] | Unread


def read_kinds(params: Params) -> Reader[tuple[Object, Object]]:
    core, groups = yield (Get("/api", accept=DISCOVERY), Get("/apis", accept=DISCOVERY))
    return must(core), must(groups)


def build_kinds(answers: tuple[Object, Object], params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: `usual`, the most common kinds, and `groups`, all kinds that can be listed."""
    found = [each for answer in answers for each in _kinds(answer)]
    places = {each["resource"]: each for each in reversed(found)}
    usual = [{"title": title, "kinds": [places[name] for name in names if name in places]} for title, names in USUAL]
    titles = sorted({each["group"] for each in found}, key=lambda name: (name != CORE, name))
    groups = [{"title": title, "kinds": [each for each in found if each["group"] == title]} for title in titles]
    return {"usual": [each for each in usual if each["kinds"]], "groups": groups}


def _kinds(answer: Object) -> Iterator[dict[str, Any]]:
    """Yield the kinds of each group in its preferred version, which comes first."""
    for group in answer.get("items") or []:
        name = (group.get("metadata") or {}).get("name") or CORE
        for version in (group.get("versions") or [])[:1]:
            for each in version.get("resources") or []:
                if "list" in (each.get("verbs") or []):
                    yield {"group": name, "version": version["version"], "resource": each["resource"],
                           "kind": (each.get("responseKind") or {}).get("kind", each["resource"]),
                           "namespaced": each.get("scope") == "Namespaced",
                           "href": link("cluster", name, version["version"], each["resource"])}  # fmt: skip


def read_table(params: Params) -> Reader[Object]:
    """Read the table of a kind.

    Without the right to list it in the whole cluster, read each permitted namespace with runs, and explain that in
    `only`.
    """
    query = {"limit": str(LIMIT)} | {name: params[name] for name in ("continue",) if params.get(name)}
    answer = yield Get(_path(params), query, accept=TABLE)
    if params.get("namespace") or not (isinstance(answer, Unread) and answer.status == 403):
        whole: Object = must(answer)
        return whole
    spaces = objects((yield listing("v1", "namespaces", labels=SPACES)))
    names = [] if isinstance(spaces, Unread) else sorted(str(each["metadata"]["name"]) for each in spaces)
    asks = tuple(Get(_path({**params, "namespace": name}), {"limit": str(LIMIT)}, accept=TABLE) for name in names)
    answers = dict(zip(names, (yield asks) if asks else (), strict=True))
    good = {name: each for name, each in answers.items() if not isinstance(each, Unread)}
    if not good:
        must(answer)
    first = next(iter(good.values()))
    rows = [row for each in good.values() for row in each.get("rows") or []]
    cut = [name for name, each in good.items() if (each.get("metadata") or {}).get("continue")]
    said = [f"Only the namespaces that you may see are shown: {', '.join(good)}."]
    said += [f"{name} has more objects: enter it as the namespace above." for name in cut]
    return {**first, "metadata": {}, "rows": rows, "only": said}


def build_table(table: Object, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: `columns` and `rows` as in kubectl, each row with its namespace."""
    columns = [each for each in table.get("columnDefinitions") or [] if not each.get("priority")]
    shown = [n for n, each in enumerate(table.get("columnDefinitions") or []) if not each.get("priority")]
    rows = []
    for row in table.get("rows") or []:
        meta = (row.get("object") or {}).get("metadata") or {}
        space = str(meta.get("namespace") or "")
        place = [params["group"], params["version"], params["resource"], *filter(None, [space])]
        cells = ["" if cell is None else str(cell) for cell in map(row["cells"].__getitem__, shown)]
        rows.append({"namespace": space, "href": link("cluster", *place, str(meta.get("name", ""))), "cells": cells})
    more = (table.get("metadata") or {}).get("continue") or ""
    return {
        "group": params["group"],
        "version": params["version"],
        "resource": params["resource"],
        "namespace": params.get("namespace", ""),
        "namespaced": any(each["namespace"] for each in rows),
        "columns": [str(each["name"]) for each in columns],
        "rows": rows,
        "more": more,
        "only": table.get("only", []),
        "remaining": (table.get("metadata") or {}).get("remainingItemCount"),
    }


def read_one(params: Params) -> Reader[One]:
    space, name = params.get("namespace", ""), params["name"]
    about = {"involvedObject.name": name} | ({"involvedObject.namespace": space} if space else {})
    said = listing("v1", "events", space, fields=",".join(f"{key}={value}" for key, value in about.items()))
    found, answered = yield (Get(_path(params, name)), said)
    return One(must(found), objects(answered))


def build_one(one: One, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: the object as YAML, without the values of a Secret, and its events."""
    meta = one.found.get("metadata") or {}
    mine = [] if isinstance(one.said, Unread) else [each for each in one.said if _about(each, one.found)]
    return {
        "kind": str(one.found.get("kind", "")),
        "name": str(meta.get("name", "")),
        "namespace": str(meta.get("namespace", "")),
        "resource": params["resource"],
        "up": link("cluster", params["group"], params["version"], params["resource"]),
        "yaml": text(bare(one.found)),
        "events": events(mine, now),
        "unread": [one.said.reason] if isinstance(one.said, Unread) else [],
    }


def bare(found: Object) -> Object:
    """Return an object without managed fields and the last-applied annotation; of a Secret, show only the keys."""
    meta = {key: value for key, value in (found.get("metadata") or {}).items() if key not in _NOISE}
    secret = found.get("kind") == "Secret"
    # kubectl stores the whole object in this annotation, including the values of a Secret.
    kept = {k: v for k, v in (meta.get("annotations") or {}).items() if k != LAST_APPLIED and not secret}
    meta = {**meta, "annotations": kept} if kept else {k: v for k, v in meta.items() if k != "annotations"}
    rest = {key: value for key, value in found.items() if key != "metadata"}
    for part in ("data", "stringData"):
        if secret and part in rest:
            rest[part] = dict.fromkeys(sorted(rest[part] or {}), "(not shown)")
    head: Object = {key: rest.pop(key) for key in ("apiVersion", "kind") if key in rest}
    return {**head, "metadata": meta, **rest}


def _about(event: Object, found: Object) -> bool:
    """Return whether an event belongs to this object, and not to an earlier one of the same name."""
    about = event.get("involvedObject") or {}
    uid = (found.get("metadata") or {}).get("uid")
    # In events about a node, a kubelet sets the uid to the node's name.
    same = about.get("uid") in (None, "", uid, (found.get("metadata") or {}).get("name"))
    return about.get("kind") == found.get("kind") and same


def _path(params: Params, name: str = "") -> str:
    """Return the API path of the shown objects.

    :raises KubeError: status 404, a part is no valid name.
    """
    group, version = params["group"], params["version"]
    space = params.get("namespace", "")
    for part in filter(None, (group, version, params["resource"], space, name)):
        if not _PART.fullmatch(part):
            raise KubeError(f"{part!r} is no valid name in a cluster.", status=404)
    full = version if group == CORE else f"{group}/{version}"
    return path(full, params["resource"], space, name)


KINDS = Page("kinds", "/cluster", read_kinds, build_kinds)
OBJECTS = Page(
    "objects", "/cluster/{group}/{version}/{resource}", read_table, build_table, query=("namespace", "continue")
)
OBJECT = Page("object", f"{OBJECTS.path}/{{namespace}}/{{name}}", read_one, build_one)
OF_CLUSTER = Page("object", f"{OBJECTS.path}/{{name}}", read_one, build_one)
"""Page of a cluster-scoped object."""
