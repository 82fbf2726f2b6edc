"""An API server that has persistent volumes and drivers of CSI alone, as far as a client looks before it reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.aws.server import free_port

RESOURCE = {
    "name": "persistentvolumes",
    "singularName": "",
    "namespaced": False,
    "kind": "PersistentVolume",
    "verbs": ["get", "list"],
}
DRIVER = {"name": "csidrivers", "singularName": "", "namespaced": False, "kind": "CSIDriver", "verbs": ["get", "list"]}


def volume(name: str, phase: str, claim: str, **source: Any) -> dict[str, Any]:
    """A volume that a claim of the namespace `trainings` has, or has had."""
    spec = {"claimRef": {"namespace": "trainings", "name": claim}, **source}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


@contextmanager
def cluster(folder: Path, volumes: list[dict[str, Any]] | None, drivers: tuple[str, ...] = ()) -> Iterator[Path]:
    """The kubeconfig of a cluster with these volumes and drivers; None for one whose API says nothing of volumes."""
    group = "storage.k8s.io/v1"
    version = {"groupVersion": group, "version": "v1"}
    answers = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [{"name": "storage.k8s.io", "versions": [version], "preferredVersion": version}],
        },
        f"/apis/{group}": {"kind": "APIResourceList", "groupVersion": group, "resources": [DRIVER]},
        **{
            f"/apis/{group}/csidrivers/{name}": {"kind": "CSIDriver", "apiVersion": group, "metadata": {"name": name}}
            for name in drivers
        },
        "/apis/coordination.k8s.io/v1": {
            "kind": "APIResourceList",
            "groupVersion": "coordination.k8s.io/v1",
            "resources": [{"name": "leases", "kind": "Lease", "namespaced": True, "verbs": ["get", "create"]}],
        },
        "/api/v1": {
            "kind": "APIResourceList",
            "groupVersion": "v1",
            "resources": [RESOURCE] if volumes is not None else [],
        },
        "/api/v1/persistentvolumes": {
            "kind": "PersistentVolumeList",
            "apiVersion": "v1",
            "metadata": {},
            "items": volumes or [],
        },
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(answers.get(self.path.partition("?")[0]))

        def do_POST(self) -> None:
            """The lease of the run; nothing else is made."""
            lease = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert lease["kind"] == "Lease"
            lease["metadata"] |= {"uid": "1", "resourceVersion": "1"}
            answers[f"{self.path.partition('?')[0]}/{lease['metadata']['name']}"] = lease
            self.answer(lease)

        def do_DELETE(self) -> None:
            self.answer(answers.pop(self.path.partition("?")[0], None))

        def answer(self, answer: Any) -> None:
            body = json.dumps(answer or {}).encode()
            self.send_response(200 if answer else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", free_port()), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        path = folder / "kubeconfig"
        config = {
            "kind": "Config",
            "apiVersion": "v1",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {}}],
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        try:
            yield path
        finally:
            server.shutdown()
