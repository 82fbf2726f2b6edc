"""Delete objects that have a given label and are no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from .api import Api, Object, describe
from .apply import retry

WRITE_SECONDS = 60.0

Place = tuple[str, str, str]
"""Kind, namespace (empty for cluster-scoped objects) and name."""


def place(obj: Mapping[str, Any]) -> Place:
    meta = obj["metadata"]
    return str(obj["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def plan_prune(api: Api, kinds: Sequence[Mapping[str, str]], keep: Iterable[Mapping[str, Any]]) -> Plan:
    """Plan to delete the objects that label selectors match, except those in `keep`.

    :param kinds: each has `api_version`, `kind`, `selector`, and optionally `namespace`; without it, all namespaces
        are searched. An empty selector is an error, because it would match everything.
    :raises KubeError: a kind cannot be listed; nothing was deleted.
    """
    if not all(each["selector"].strip() for each in kinds):
        raise ValueError("a selector is empty, which would delete everything")
    kept = {place(obj) for obj in keep}
    found = [
        obj
        for each in kinds
        for obj in api.list(each["api_version"], each["kind"], each.get("namespace") or None, labels=each["selector"])
        # Objects that are already being deleted need no step.
        if not obj["metadata"].get("deletionTimestamp")
    ]
    gone = [obj for obj in found if place(obj) not in kept]
    steps = [Step(f"Delete {describe(obj)}", partial(_delete, api, obj)) for obj in gone]
    return Plan(steps, [describe(obj) for obj in found], [describe(obj) for obj in found if place(obj) in kept])


def _delete(api: Api, obj: Object) -> None:
    """Delete this object by its UID, so that a newer one of the same name stays (status 409)."""
    meta = obj["metadata"]
    retry(
        partial(
            api.delete, obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"), uid=meta.get("uid", "")
        ),
        timeout=WRITE_SECONDS,
    )
