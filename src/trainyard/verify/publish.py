"""The receipt in the cluster, where the console reads it: a ConfigMap for each that differs, the newest ten."""

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
"""`passed` or `failed`, which is everything else."""
KEY = "receipt.json"
KEPT = 10
WRITE_SECONDS = 30.0


def plan_publish(api: Api, receipt: Mapping[str, Any]) -> Plan:
    """Steps that publish a receipt and delete those beyond the newest ten; none where the newest says the same.

    Where there is no console, there is nobody to publish it for.

    :raises KubeError: what is published cannot be read.
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
    """The ConfigMap of a receipt, named after the time at which it was written."""
    stamp = str(receipt["written_at"]).partition("+")[0].replace("-", "").replace(":", "").removesuffix("Z")
    result = "passed" if receipt["verdict"] == PASS else "failed"
    meta = {"name": f"receipt-{stamp.lower()}z", "namespace": NAMESPACE, "labels": {**MANAGED, LABEL: result}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {KEY: json.dumps(receipt, indent=2)}}


def _same(found: Object, receipt: Mapping[str, Any]) -> bool:
    """Whether a published receipt says the same, times and counters apart."""
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
