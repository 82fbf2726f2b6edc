"""A cluster as its API server answers, for the console in tests: what lies at which path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]
SPACE, CONSOLE = "trainings", "trainyard-console"
HOSTILE = "<img src=x onerror=alert(1)>\"'&"
"""What nobody may take for markup."""


class World:
    """Objects by path, made by the calls below.

    :param now: the time at which everything is looked at.
    """

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)
        self.objects: dict[str, Object] = {}
        self.texts: dict[str, str] = {}
        """Logs by path of their pod."""

    def ago(self, seconds: float) -> str:
        return (self.now - timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")

    def add(self, version: str, kind: str, plural: str, meta: Mapping[str, Any], **rest: Any) -> Object:
        space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        times = {"creationTimestamp": self.ago(600), "uid": f"uid-{plural}-{meta['name']}"}
        found = {"apiVersion": version, "kind": kind, "metadata": {**times, **meta}, **rest}
        self.objects[f"{base}{space}/{plural}/{meta['name']}"] = found
        return found

    def record(self, name: str, **fields: Any) -> None:
        labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": name}
        known = {
            "name": name,
            "result": "passed",
            "steps": 2000,
            "train_steps": 2000,
            "accuracy": 0.968,
            "accuracy_bound": 0.95,
            "attempt": "20261122T090000Z",
            "submitted_at": self.ago(9000),
            **fields,
        }
        self.add(
            "v1",
            "ConfigMap",
            "configmaps",
            {
                "name": f"{name}-result",
                "namespace": SPACE,
                "labels": labels,
                "annotations": {"trainyard.dev/workload": "mnist_ps"},
            },
            data={"result.json": json.dumps(known)},
        )

    def event(self, name: str, about: str, reason: str, message: str, seconds: float, kind: str = "Pod") -> None:
        self.add(
            "v1",
            "Event",
            "events",
            {"name": name, "namespace": SPACE},
            reason=reason,
            message=message,
            type="Warning" if reason.startswith("Failed") else "Normal",
            lastTimestamp=self.ago(seconds),
            involvedObject={"kind": kind, "name": about, "namespace": SPACE},
        )

    def receipt(self, stamp: str, receipt: Object) -> None:
        label = {"trainyard.dev/receipt": "passed" if receipt["verdict"] == "pass" else "failed"}
        self.add(
            "v1",
            "ConfigMap",
            "configmaps",
            {"name": f"receipt-{stamp}", "namespace": CONSOLE, "labels": label},
            data={"receipt.json": json.dumps(receipt)},
        )
