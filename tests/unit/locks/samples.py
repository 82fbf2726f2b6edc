"""A cluster that has leases, a clock that goes on by itself, and runs that want the lock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trainyard.core.waiter import Clock
from trainyard.kube.api import Api
from trainyard.site_lock.holder import Holder

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/trainyard-run"
MINE = Holder(verb="site", run_id="run-1", since=1000.0, user="alice", host="desk", pid=11, boot="b1", place="1:2")
OTHER = replace(MINE, verb="reprovision", run_id="run-2", user="robot", host="controller1", pid=22, boot="b2")
DEAD_HERE = replace(MINE, run_id="run-0", pid=10)


class Ticking(Clock):
    """Sleeping is how its time goes on; `during` is called then."""

    def __init__(self, now: float = 1000.0, during: Callable[[], object] = bool) -> None:
        self.now, self.during = now, during

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.during()


class Leases:
    """One lease, changed under its resourceVersion as the real server does it.

    :param down: statuses of the next answers; 0 for none.
    """

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down: list[int] = []
        self.before_write: Callable[[], object] = bool
        self.calls: list[str] = []

    @property
    def api(self) -> Api:
        return Api(self)

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if path == "/apis/coordination.k8s.io/v1":
            return 200, json.dumps({"resources": [{"kind": "Lease", "name": "leases", "namespaced": True}]})
        self.calls.append(method)
        if self.down:
            status = self.down.pop(0)
            return status, "no route to host" if status == 0 else json.dumps({"message": "not now"})
        assert path == (PATH.rpartition("/")[0] if method == "POST" else PATH)
        if method == "GET":
            return (200, json.dumps(self.lease)) if self.lease else (404, "{}")
        before, self.before_write = self.before_write, bool
        before()
        if method == "POST":
            return (409, "{}") if self.lease else (201, self._keep(body))
        wanted = body["preconditions"] if method == "DELETE" else body["metadata"]
        if self.lease is None:
            return 404, "{}"
        if wanted["resourceVersion"] != str(self.version):
            return 409, json.dumps({"message": "the object has been modified"})
        if method == "DELETE":
            self.lease = None
            return 200, "{}"
        return 200, self._keep(body)

    def _keep(self, body: Any) -> str:
        self.version += 1
        uid = self.lease["metadata"]["uid"] if self.lease else f"uid-{self.version}"
        made = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version), "uid": uid}}
        self.lease = json.loads(json.dumps(made))
        return json.dumps(self.lease)
