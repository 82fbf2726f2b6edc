"""An API server in memory with a large cluster: pods and nodes as large as real ones, in pages, with watches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.unit.console.consoles import CHIEF, objects
from tests.unit.console.fake import FakeApi, User, _allowed

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
NOISE = "x" * 40


def fields(count: int) -> list[Any]:
    """What the API server remembers of who has set which field: half of a pod."""
    owned = {f"f:{NOISE}{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(count)}
    return [{"manager": "kubelet", "operation": "Update", "fieldsV1": owned}]


def pod(number: int, nodes: int, run: str = "") -> dict[str, Any]:
    """A pod of 5 to 8 KB."""
    env = [{"name": f"SETTING_{each}", "value": NOISE} for each in range(20)]
    mounts = [{"name": f"volume-{each}", "mountPath": f"/mnt/{NOISE}/{each}"} for each in range(6)]
    labels = {"app": NOISE, "pod-template-hash": "abcdef"}
    if run:
        labels |= {"trainyard.dev/run": run, "trainyard.dev/role": "worker"}
        labels["batch.kubernetes.io/job-completion-index"] = str(number % 8)
    asked = {"cpu": "500m", "memory": "1Gi"} | ({"nvidia.com/gpu": "1"} if number % 5 == 0 else {})
    meta = {"name": f"pod-{number}", "namespace": "trainings" if run else f"team-{number % 20}", "uid": f"uid-{number}",
            "labels": labels, "creationTimestamp": "2026-11-21T12:00:00Z", "managedFields": fields(12),
            "annotations": {"example.com/config": NOISE * 12}}  # fmt: skip
    container = {"name": "main", "image": f"registry/{NOISE}@sha256:{'0' * 64}", "env": env, "volumeMounts": mounts,
                 "resources": {"requests": asked, "limits": asked}}  # fmt: skip
    spec = {"nodeName": f"node-{number % nodes}", "containers": [container],
            "volumes": [{"name": f"volume-{each}", "configMap": {"name": NOISE}} for each in range(6)]}  # fmt: skip
    state = {"name": "main", "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}}, "imageID": "0" * 100}
    conditions = [{"type": f"Condition{each}", "status": "True", "reason": NOISE} for each in range(5)]
    status = {"phase": "Running", "containerStatuses": [state], "conditions": conditions}
    return {"metadata": meta, "spec": spec, "status": status}


def node(number: int) -> dict[str, Any]:
    """A node of some 10 KB, most of it images."""
    there = {"cpu": "64", "memory": "256Gi", "pods": "110"} | ({"nvidia.com/gpu": "4"} if number % 2 else {})
    images = [{"names": [f"registry/{NOISE}@sha256:{'0' * 64}"], "sizeBytes": 1} for _ in range(50)]
    meta = {
        "name": f"node-{number}",
        "labels": {"kubernetes.io/hostname": f"node-{number}"},
        "managedFields": fields(9),
    }
    info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.3"}
    status = {"allocatable": there, "capacity": there, "images": images, "nodeInfo": info,
              "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
    return {"metadata": meta, "spec": {}, "status": status}


def waiting() -> dict[str, Any]:
    """The pod of the tests' run, for which there is no room."""
    found = objects()[CHIEF]
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}
    return {**found, "status": {"phase": "Pending", "conditions": [said]}}


class Large(FakeApi):
    """A cluster with one run that waits, and many pods of others.

    :param pods: number of pods; `nodes` is that of nodes.
    """

    def __init__(self, users: Mapping[str, User], pods: int, nodes: int) -> None:
        super().__init__(objects() | {CHIEF: waiting()}, users)
        found = [
            waiting(),
            *(pod(number, nodes, f"run-{number // 8}" if number % 4 == 0 else "") for number in range(pods)),
        ]
        self.lists = {PODS: found, NODES: [node(number) for number in range(nodes)]}
        self.texts = {path: [json.dumps(each) for each in listed] for path, listed in self.lists.items()}
        self.pages: list[str] = []
        """Pages that were asked for."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        user = self.users.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        known = self.texts.get(request.path)
        if known is None or user is None or "watch" in request.query or not _allowed(user, request):
            return await super().handle(request)
        self.pages.append(request.path)
        label = request.query.get("labelSelector", "").partition("=")[0]
        found = [
            text
            for text, each in zip(known, self.lists[request.path], strict=True)
            if not label or label in each["metadata"]["labels"]
        ]
        begin, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", "100000"))
        more = str(begin + limit) if begin + limit < len(found) else ""
        head = json.dumps({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "11", "continue": more}})
        text = f'{head[:-1]}, "items": [{",".join(found[begin : begin + limit])}]}}'
        return web.Response(text=text, content_type="application/json")
