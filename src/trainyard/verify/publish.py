"""Receipts in the cluster, for the console: a ConfigMap per changed receipt. Only the newest ten are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from ..kube.api import Api, Object
from ..kube.apply import retry
from ..trainings.names import MANAGED
from .verdict import PASS, stable

NAMESPACE = "trainyard-console"
LABEL = "trainyard.dev/receipt"
"""Label: `passed` for the verdict pass, `failed` for any other."""
KEY = "receipt.json"
KEPT = 10
WRITE_SECONDS = 30.0


def plan_publish(api: Api, receipt: Mapping[str, Any]) -> Plan:
    """Plan to publish a receipt unless the newest is equal, and to delete all but the newest ten.

    Without a console the plan is empty, because only the console reads receipts.

    :raises KubeError: the published receipts cannot be read.
    """
    if api.get("v1", "Namespace", NAMESPACE) is None:
        return Plan()
    there = sorted(api.list("v1", "ConfigMap", NAMESPACE, labels=LABEL), key=_name, reverse=True)
    new = published(receipt)
    if there and (_same(there[0], receipt) or _name(there[0]) == _name(new)):
        steps = []
    else:
        there = [new, *there]
        steps = [Step(f"Publish the receipt {_name(new)}", partial(_create, api, new))]
    gone = there[KEPT:]
    steps += [Step(f"Delete the receipt {_name(each)}", partial(_delete, api, each)) for each in gone]
    return Plan(steps, [], [_name(each) for each in there[:KEPT]])


def published(receipt: Mapping[str, Any]) -> Object:
    """Return the ConfigMap of a receipt, named after the time at which it was written."""
    stamp = str(receipt["written_at"]).partition("+")[0].replace("-", "").replace(":", "").removesuffix("Z")
    result = "passed" if receipt["verdict"] == PASS else "failed"
    meta = {"name": f"receipt-{stamp.lower()}z", "namespace": NAMESPACE, "labels": {**MANAGED, LABEL: result}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {KEY: json.dumps(receipt, indent=2)}}


def _same(found: Object, receipt: Mapping[str, Any]) -> bool:
    """Return whether a published receipt is equal, except for times and counters."""
    try:
        return stable(json.loads(found["data"][KEY])) == stable(json.loads(json.dumps(receipt)))
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _create(api: Api, obj: Object) -> None:
    retry(partial(api.create, obj), timeout=WRITE_SECONDS)


def _delete(api: Api, obj: Object) -> None:
    retry(partial(api.delete, "v1", "ConfigMap", _name(obj), NAMESPACE), timeout=WRITE_SECONDS)
