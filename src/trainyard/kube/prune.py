"""Deleting objects that bear a label and are wanted by nobody any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from .api import Api, Object, describe
from .apply import retry

WRITE_SECONDS = 60.0

Place = tuple[str, str, str]
"""Kind, namespace (empty for what is in none) and name."""


def place(obj: Mapping[str, Any]) -> Place:
    meta = obj["metadata"]
    return str(obj["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def plan_prune(api: Api, kinds: Sequence[Mapping[str, str]], keep: Iterable[Mapping[str, Any]]) -> Plan:
    """Steps that delete what label selectors find, except the objects of `keep`.

    :param kinds: `api_version`, `kind` and `selector` of what is looked for, and `namespace`, without which it is all
        of them. A selector is never empty, which would be everything.
    :raises KubeError: a kind cannot be listed; nothing was deleted then.
    """
    if not all(each["selector"].strip() for each in kinds):
        raise ValueError("without a selector everything would be deleted")
    kept = {place(obj) for obj in keep}
    found = [
        obj
        for each in kinds
        for obj in api.list(each["api_version"], each["kind"], each.get("namespace") or None, labels=each["selector"])
        # One that is told to go is gone in a moment.
        if not obj["metadata"].get("deletionTimestamp")
    ]
    gone = [obj for obj in found if place(obj) not in kept]
    steps = [Step(f"Delete {describe(obj)}", partial(_delete, api, obj)) for obj in gone]
    return Plan(steps, [describe(obj) for obj in found], [describe(obj) for obj in found if place(obj) in kept])


def _delete(api: Api, obj: Object) -> None:
    """Delete this very object; one of its name that was made since stays (status 409)."""
    meta = obj["metadata"]
    retry(
        partial(
            api.delete, obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"), uid=meta.get("uid", "")
        ),
        timeout=WRITE_SECONDS,
    )
