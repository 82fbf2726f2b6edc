"""An API server in memory: the transport of an `Api` in tests."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

CLUSTER_WIDE = (
    "CertificateSigningRequest",
    "ClusterRoleBinding",
    "Namespace",
    "Node",
    "PersistentVolume",
    "ValidatingWebhookConfiguration",
)
KINDS = {
    "/api/v1": (
        "ConfigMap",
        "Event",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "Secret",
        "Service",
        "ServiceAccount",
    ),
    "/apis/apps/v1": ("ControllerRevision", "DaemonSet", "Deployment"),
    "/apis/admissionregistration.k8s.io/v1": ("ValidatingWebhookConfiguration",),
    "/apis/batch/v1": ("Job",),
    "/apis/certificates.k8s.io/v1": ("CertificateSigningRequest",),
    "/apis/jobset.x-k8s.io/v1alpha2": ("JobSet",),
    "/apis/discovery.k8s.io/v1": ("EndpointSlice",),
    "/apis/networking.k8s.io/v1": ("NetworkPolicy",),
    "/apis/rbac.authorization.k8s.io/v1": ("ClusterRoleBinding", "RoleBinding"),
}


def plural(kind: str) -> str:
    return re.sub("ys$", "ies", f"{kind.lower()}s")


class ApiServer:
    """Keeps objects by path; lists, applies, merges, deletes and evicts them as the real one does.

    :param objects: path -> object. What stands at a collection's path is answered as it is; a number is a status; a
        function gets the query and returns the text of the answer.
    """

    def __init__(self, objects: Mapping[str, Any] | None = None) -> None:
        self.objects: dict[str, Any] = copy.deepcopy(dict(objects or {}))
        self.refusals: dict[str, list[int]] = {}
        """Path -> statuses that the next writes to it get; one that is dry counts."""
        self.calls: list[str] = []
        """`METHOD path` of every call but those for discovery; dry runs begin with `dry `."""

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith(("GET", "dry"))]

    def __call__(self, method: str, path: str, query: list[tuple[str, str]], body: Any, kind: str) -> tuple[int, str]:
        if path in KINDS and path not in self.objects:
            served = [{"kind": it, "name": plural(it), "namespaced": it not in CLUSTER_WIDE} for it in KINDS[path]]
            return 200, json.dumps({"resources": served})
        dry = ("dryRun", "All") in query
        self.calls.append(f"{'dry ' if dry else ''}{method} {path}")
        if method == "GET":
            return self._get(path, query)
        if self.refusals.get(path):
            return self.refusals[path].pop(0), json.dumps({"message": f"no {method} of {path}"})
        if method == "PATCH":
            return self._patch(path, body, kind, dry)
        if method == "POST" and not path.endswith("/eviction"):
            made = f"{path}/{body['metadata']['name']}"
            # A rehearsal ends where the name is free; else it is answered as the creation would be.
            return (201, json.dumps(body)) if dry and made not in self.objects else self._create(made, body)
        name = path.removesuffix("/eviction")
        if name not in self.objects:
            return 404, "{}"
        wanted = (body or {}).get("preconditions", {}).get("uid")
        if method == "DELETE" and wanted not in (None, self.objects[name]["metadata"].get("uid")):
            return 409, json.dumps({"message": "the UID in the precondition is another"})
        if method == "POST":
            assert body["deleteOptions"]["preconditions"]["uid"] == self.objects[name]["metadata"]["uid"]
        return 200, json.dumps(self.objects.pop(name))

    def _get(self, path: str, query: list[tuple[str, str]]) -> tuple[int, str]:
        answer = self.objects.get(path)
        if answer is None and path.rpartition("/")[2] in map(plural, sum(KINDS.values(), ())):
            # /api/v1/pods is about all namespaces.
            pattern = re.sub(r"(/v1\w*)/", r"\1/(namespaces/[^/]+/)?", re.escape(path), count=1) + "/[^/]+"
            found = [it for each, it in sorted(self.objects.items()) if re.fullmatch(pattern, each)]
            answer = {"items": [it for it in found if _selected(it, dict(query).get("labelSelector", ""))]}
        if callable(answer):
            return 200, answer(query)
        status = answer if isinstance(answer, int) else 200 if answer else 404
        return status, json.dumps(answer if status == 200 else {"message": f"no {path}"})

    def _create(self, path: str, body: Any) -> tuple[int, str]:
        if path in self.objects:
            return 409, json.dumps({"message": f"{path} already exists"})
        made = json.loads(json.dumps(body))
        made["metadata"] |= {"uid": f"uid-{len(self.calls)}", "creationTimestamp": "2026-11-21T12:00:00Z"}
        self.objects[path] = made
        return 201, json.dumps(made)

    def _patch(self, path: str, body: Any, kind: str, dry: bool) -> tuple[int, str]:
        live = self.objects.get(path, {})
        if kind == "application/merge-patch+json":
            merged = _merge(live, body)
        else:
            # Server-side apply; the fields that only the server sets come on top.
            merged = json.loads(json.dumps({**live, **body}))
            merged["metadata"] |= {"resourceVersion": "9", "managedFields": [{"manager": "x"}]}
        if not dry:
            self.objects[path] = merged
        return 200, json.dumps(merged)


def _selected(obj: Any, selector: str) -> bool:
    """Whether a label selector, `name` or `name=value` with commas and no other kind, takes an object."""
    labels = obj["metadata"].get("labels") or {} if isinstance(obj, Mapping) else {}
    for term in filter(None, selector.split(",")):
        name, equal, value = term.partition("=")
        if name not in labels or (equal and labels[name] != value):
            return False
    return True


def _merge(there: Any, change: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(change, Mapping):
        return change
    there = there if isinstance(there, Mapping) else {}
    both = {**there, **{name: _merge(there.get(name), value) for name, value in change.items()}}
    return {name: value for name, value in both.items() if value is not None}
