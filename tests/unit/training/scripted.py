"""A cluster with one run that follows a script, by a clock that goes on only when somebody waits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.unit.apiserver import ApiServer
from trainyard.core.waiter import Clock
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.names import INDEX_LABEL, NAME_LABEL, ROLE_LABEL

SPACE = "/api/v1/namespaces/trainings"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
BEGIN = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC).timestamp()

Script = Sequence[tuple[Any, ...]]
"""Seconds, the name of a method of `Cluster`, and its arguments."""


class Ticking(Clock):
    """A clock that stands still until somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return BEGIN + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def stamp(now: float) -> str:
    """As the API server writes times of objects."""
    return datetime.fromtimestamp(BEGIN + now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Cluster(ApiServer):
    """One run and its pods; the script begins when the run is there.

    :param there: whether it was submitted before.
    :param grace: seconds from the deletion of what runs it until it and its pods are gone.
    """

    def __init__(self, training: Training, script: Script, *, there: bool = True, grace: float = 0.0) -> None:
        super().__init__({f"{SPACE}/persistentvolumeclaims/training": {"metadata": {"name": "training"}}})
        self.clock = Ticking()
        self._training, self._script, self._grace = training, list(script), grace
        self._path = f"{SETS}/{training.name}"
        self._changes: list[dict[str, Any]] = []
        self._logs: dict[str, list[tuple[float, str]]] = {}
        self._away_until = self._mute_until = self._begun = 0.0
        self._made = 0
        if there:
            self._create(self._path, run_object(training, "20261121T120000Z-0001"))

    @property
    def record(self) -> dict[str, Any]:
        """What is remembered of the run; empty if nothing is."""
        kept = self.objects.get(f"{SPACE}/configmaps/{self._training.name}-result")
        return json.loads(kept["data"]["result.json"]) if kept else {}

    # What a script can do.

    def start(self, *waiting: str, why: str = "") -> None:
        """A pod in every place; those that are named wait."""
        for role in self._training.roles.values():
            for index in range(role.replicas):
                place = f"{role.name}-{index}"
                self._made += 1
                name = f"{self._training.name}-{role.name}-0-{index}-{self._made:05}"
                labels = {NAME_LABEL: self._training.name, ROLE_LABEL: role.name, INDEX_LABEL: str(index)}
                meta = {"name": name, "namespace": "trainings", "uid": name, "labels": labels}
                meta["creationTimestamp"] = stamp(self.clock.now)
                state = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
                unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
                if place in waiting:
                    state = {"phase": "Pending", "conditions": [unschedulable]}
                self._change("ADDED", {"metadata": meta, "spec": {"nodeName": "worker1"}, "status": state})

    def say(self, place: str, **event: Any) -> None:
        """A line of ours in the log of the pod that is in a place now."""
        line = json.dumps({"time": self.clock.time(), **event})
        self._logs.setdefault(self._pod(place)["metadata"]["name"], []).append((self.clock.now, line))

    def exit(self, place: str, code: int) -> None:
        pod = self._pod(place)
        ended = {"phase": "Failed" if code else "Succeeded"}
        times = {"startedAt": pod["metadata"]["creationTimestamp"], "finishedAt": stamp(self.clock.now)}
        ended["containerStatuses"] = [{"state": {"terminated": {"exitCode": code, **times}}}]
        self._change("MODIFIED", {**pod, "status": ended})

    def delete(self, *places: str) -> None:
        for pod in [self._pod(place) for place in places] or self.pods:
            self._change("DELETED", pod)

    def restart(self, restarts: int) -> None:
        """The whole set is made anew."""
        self.delete()
        self.objects[self._path].setdefault("status", {}).update(restarts=restarts, restartsCountTowardsMax=restarts)
        self.start()

    def end(self, kind: str, reason: str = "", message: str = "") -> None:
        """What runs it has `Completed` or `Failed`."""
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        condition["lastTransitionTime"] = stamp(self.clock.now)
        self.objects[self._path].setdefault("status", {})["conditions"] = [condition]

    def vanish(self) -> None:
        """Somebody else deletes it."""
        self.delete()
        self.objects.pop(self._path, None)

    def replace(self) -> None:
        """Somebody else submits it anew."""
        self.vanish()
        self._create(self._path, run_object(self._training, "20261121T130000Z-0002"))

    def away(self, seconds: float) -> None:
        """The API server does not answer."""
        self._away_until = self.clock.now + seconds

    def mute(self, seconds: float) -> None:
        """The nodes do not answer, so that no log can be read."""
        self._mute_until = self.clock.now + seconds

    # The server.

    @property
    def pods(self) -> list[dict[str, Any]]:
        return [it for path, it in self.objects.items() if path.startswith(f"{SPACE}/pods/") and NAME_LABEL in str(it)]

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        asked = dict(query)
        if "watch" in asked and self.clock.now >= self._away_until:
            self.clock.sleep(float(asked["timeoutSeconds"]))
        self._play()
        if self.clock.now < self._away_until:
            return 0, "connection refused"
        if method == "GET" and path == f"{SPACE}/pods":
            if "watch" in asked:
                return 200, "\n".join(map(json.dumps, self._changes[int(asked["resourceVersion"]) :]))
            return 200, json.dumps({"metadata": {"resourceVersion": str(len(self._changes))}, "items": self.pods})
        if method == "GET" and path.endswith("/log"):
            return self._log(path, asked)
        if method == "DELETE" and path == self._path and path in self.objects:
            self.calls.append(f"{method} {path}")
            if (body or {}).get("preconditions", {}).get("uid") not in (None, self.objects[path]["metadata"]["uid"]):
                return 409, json.dumps({"message": "the UID in the precondition is another"})
            self.objects[path]["metadata"]["deletionTimestamp"] = stamp(self.clock.now)
            self._script = [(self.clock.now - self._begun + self._grace, "vanish")]
            return 200, "{}"
        return super().__call__(method, path, query, body, kind)

    def _create(self, path: str, body: Any) -> tuple[int, str]:
        answer = super()._create(path, body)
        if path == self._path and answer[0] == 201:
            self.objects[path]["metadata"]["creationTimestamp"] = stamp(self.clock.now)
            self._begun = self.clock.now
        return answer

    def _play(self) -> None:
        """Do what the script has for the time until now."""
        while self._script and self._path in self.objects and self._begun + self._script[0][0] <= self.clock.now:
            _, what, *arguments = self._script.pop(0)
            named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
            getattr(self, what)(*arguments, **named)

    def _pod(self, place: str) -> dict[str, Any]:
        role, index = place.rsplit("-", 1)
        labels = {ROLE_LABEL: role, INDEX_LABEL: index}
        return next(pod for pod in self.pods if labels.items() <= pod["metadata"]["labels"].items())

    def _change(self, kind: str, pod: dict[str, Any]) -> None:
        path = f"{SPACE}/pods/{pod['metadata']['name']}"
        changed = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(len(self._changes) + 1)}}
        self._changes.append({"type": kind, "object": changed})
        if kind == "DELETED":
            self.objects.pop(path, None)
        else:
            self.objects[path] = changed

    def _log(self, path: str, asked: dict[str, str]) -> tuple[int, str]:
        if path.removesuffix("/log") not in self.objects:
            return 404, "{}"
        if self.clock.now < self._mute_until:
            return 500, json.dumps({"message": "Get https://10.0.0.2:10250: dial tcp: i/o timeout"})
        lines = self._logs.get(path.split("/")[-2], [])
        if "sinceTime" in asked:
            since = int(datetime.fromisoformat(asked["sinceTime"]).timestamp() - BEGIN)
            lines = [(at, line) for at, line in lines if at >= since]
        lines = lines[-int(asked["tailLines"]) :] if "tailLines" in asked else lines
        stamped = [f"{stamp(at)[:-1]}.{int(at % 1 * 1e9):09}Z {line}" for at, line in lines]
        return 200, "".join(f"{line}\n" for line in (stamped if "timestamps" in asked else [x for _, x in lines]))
