"""Publish a receipt: in the cluster for the console, and as metrics for Prometheus.

Each changed receipt becomes a ConfigMap. Only the newest ten are kept. The metrics are a text for the textfile
collector of the Prometheus node exporter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from ..kube.api import Api, Object
from ..kube.apply import retry
from ..trainings.names import MANAGED
from .verdict import FAIL, PASS, stable

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


VALUES = {PASS: 1, FAIL: 0}
"""Values of checks and of the verdict."""
UNKNOWN_VALUE = -1

METRICS = (
    ("trainyard_verdict", "Verdict on the site: 1 pass, 0 fail, -1 unknown."),
    ("trainyard_check", "Result of one check of the verdict: 1 pass, 0 fail, -1 unknown."),
    ("trainyard_receipt_timestamp_seconds", "Time of the verdict, in seconds since 1970."),
    ("trainyard_certificate_end_timestamp_seconds", "Expiry of a certificate, in seconds since 1970."),
    ("trainyard_training_accuracy_ratio", "Held-out accuracy of the last run of a training, from 0 to 1."),
    ("trainyard_training_passed", "Result of the last run of a training: 1 if it passed, else 0."),
    ("trainyard_training_end_timestamp_seconds", "End of the last run of a training, in seconds since 1970."),
)
"""Name and help text; all are gauges."""

Sample = tuple[str, dict[str, str], float]


def render(receipt: Mapping[str, Any]) -> str:
    """Return the text of the file. Unknown values have no line."""
    samples = list(_samples(receipt))
    lines = []
    for name, what in METRICS:
        found = [(labels, value) for metric, labels, value in samples if metric == name]
        if found:
            lines += [f"# HELP {name} {what}", f"# TYPE {name} gauge"]
            lines += [f"{name}{_labels(labels)} {value:.17g}" for labels, value in found]
    return "".join(f"{line}\n" for line in lines)


def series(text: str) -> list[str]:
    """Return the series of a file: names and labels without values."""
    return [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]


def _samples(receipt: Mapping[str, Any]) -> Iterator[Sample]:
    yield "trainyard_verdict", {}, VALUES.get(receipt["verdict"], UNKNOWN_VALUE)
    for check in receipt["checks"]:
        labels = {"check": check["name"], "run": check.get("run", "")}
        yield "trainyard_check", labels, VALUES.get(check["result"], UNKNOWN_VALUE)
    yield from _time("trainyard_receipt_timestamp_seconds", {}, receipt.get("written_at"))
    for name, ends in (receipt["measured"].get("certificates") or {}).items():
        yield from _time("trainyard_certificate_end_timestamp_seconds", {"name": name}, ends)
    for training in receipt["trainings"]:
        labels = {"namespace": str(training.get("namespace", "")), "run": str(training.get("name", ""))}
        yield "trainyard_training_passed", labels, float(training.get("result") == "passed")
        if isinstance(training.get("accuracy"), int | float):
            yield "trainyard_training_accuracy_ratio", labels, float(training["accuracy"])
        yield from _time("trainyard_training_end_timestamp_seconds", labels, training.get("ended_at"))


def _time(name: str, labels: dict[str, str], text: object) -> Iterator[Sample]:
    try:
        yield name, labels, datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        key: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in labels.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}" if labels else ""
