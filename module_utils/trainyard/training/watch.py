"""Watching the pods of a run: every change, up to the exit codes of deleted pods, and what keeps pods waiting."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

from ..kube.api import Api, KubeError, Object
from . import state
from .logs import Event, KeptLogs, events
from .model import Training
from .names import API_VERSIONS, NAME_LABEL
from .places import newest, pod_state, role_of, started

WATCH_SECONDS = 1
"""The server ends each watch after this time; it is the pace of the whole wait."""
SILENCE_SECONDS = 60.0
"""The training goes on while the API server restarts; after this time without an answer the watching ends."""
CHIEF_TAIL = 400
OTHERS_TAIL = 2000
"""Lines of log read at a time. The chief's is read whole when it has ended."""


class RunView:
    """The run as the server shows it, kept up to date by `refresh`.

    A watch rather than a list: a pod that the end of the run deletes is seen with its exit code.
    """

    def __init__(self, api: Api, training: Training, kept: KeptLogs) -> None:
        self._api = api
        self._training = training
        self._kept = kept
        self._version: str | None = None
        self._read: set[str] = set()
        self._answered = time.monotonic()
        self.pods: dict[str, Object] = {}
        self.gone: set[str] = set()
        self.live: Object | None = None
        self.chief: list[Event] = []
        """What the pod that decides has said."""

    def refresh(self) -> None:
        """Take in about a second of changes: pods, the state of what runs them, the log of the pod that decides.

        :raises KubeError: the server has not answered for a minute, or refuses.
        """
        try:
            self._refresh()
            self._answered = time.monotonic()
        except KubeError as error:
            if error.status == 410:  # the watch is too old; the next refresh lists
                self._version = None
            elif not error.transient or time.monotonic() - self._answered > SILENCE_SECONDS:
                raise
            time.sleep(WATCH_SECONDS)

    def _refresh(self) -> None:
        self._changes()
        self.live = self._found()
        decider = self._training.decider.name
        chief = self.newest(decider, "0")
        if chief and started(chief) and chief["metadata"]["name"] not in self._read:
            text = self._log(chief["metadata"]["name"], CHIEF_TAIL)
            self.chief = _merge(self.chief, events(text))
            self._kept.keep(chief["metadata"]["name"], decider, text)

    def keep_logs(self, *, final: bool = False) -> None:
        """Copy the logs of all pods that are still there; an ended pod's log is read whole, once.

        :param final: read ended pods again, and the whole log of the one that decides.
        """
        for name, pod in self.pods.items():
            ended = pod_state(pod)[0] == "ended"
            if name in self.gone or not started(pod) or (name in self._read and not final):
                continue
            if ended:
                self._read.add(name)
            text = self._log(name, None if ended or final else OTHERS_TAIL)
            role = role_of(pod)
            self._kept.keep(name, role, text)
            if ended and pod is self.newest(self._training.decider.name, "0"):
                self.chief = events(text)

    def newest(self, role: str, index: str) -> Object | None:
        """The pod that is or was last in a place."""
        return newest(self.pods.values()).get(f"{role}-{index}")

    def condition(self, kind: str) -> Object:
        """A true condition of the run (Completed, Failed); empty when it does not hold."""
        return state.condition(self.live, kind)

    @property
    def restarts(self) -> int:
        return state.restarts(self.live)

    def seconds(self) -> float | None:
        """From its submission to its completion, by the cluster's clock (whole seconds)."""
        return state.seconds(self.live)

    def _found(self) -> Object | None:
        kind = self._training.shape.back_end
        found = self._api.get(API_VERSIONS[kind], kind, self._training.name, self._training.namespace)
        return {**found, "kind": kind} if found else None

    def age(self) -> float:
        """Seconds since the run was submitted, by this machine's clock; 0 before it is known."""
        created = state.created(self._found())
        return max(0.0, time.time() - datetime.fromisoformat(created).timestamp()) if created else 0.0

    def present(self) -> dict[str, Object]:
        """The last pod of each place, by `role-index`."""
        return newest(self.pods.values())

    def all_started(self) -> bool:
        wanted = sum(role.replicas for role in self._training.roles.values())
        states = [pod_state(pod)[0] for pod in self.present().values()]
        return len(states) == wanted and all(state in ("running", "ended") for state in states)

    def unreleased(self) -> list[str]:
        """Pods of the run that still hold resources."""
        done = ("Succeeded", "Failed")
        return [
            name
            for name, pod in self.pods.items()
            if name not in self.gone and (pod.get("status") or {}).get("phase") not in done
        ]

    def roles(self) -> dict[str, int | str]:
        """Exit code per place, such as `worker-1`; else `waiting`, `running`, or `stopped` for a pod that was deleted
        before its exit was seen."""
        return {place: self._exit(pod) for place, pod in self.present().items()}

    def _exit(self, pod: Object) -> int | str:
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            if "terminated" in status.get("state", {}):
                return int(status["state"]["terminated"]["exitCode"])
        return "stopped" if pod["metadata"]["name"] in self.gone else pod_state(pod)[0]

    def states(self) -> str:
        """`chief 1/1 running; worker 0/2 running (worker-1 ContainerCreating)`."""
        present = self.present()
        parts = []
        for role, wanted in self._training.roles.items():
            mine = {place: pod_state(pod) for place, pod in present.items() if place.rsplit("-", 1)[0] == role}
            count = sum(state in ("running", "ended") for state, _ in mine.values())
            why = ", ".join(f"{place} {reason}" for place, (state, reason) in mine.items() if state == "waiting")
            parts.append(f"{role} {count}/{wanted.replicas} running" + (f" ({why})" if why else ""))
        return "; ".join(parts)

    def warnings(self) -> list[str]:
        """The last warnings that the cluster has about this attempt's objects, for an error message."""
        found = []
        for event in self._api.list("v1", "Event", self._training.namespace):
            about = event["involvedObject"].get("name", "")
            when = str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])
            if (
                event.get("type") == "Warning"
                and about.startswith(self._training.name)
                and when >= state.created(self.live)
            ):
                found.append((when, f"{about}: {event.get('message', '').strip()}"))
        return [text for _, text in sorted(found)[-5:]]

    def _changes(self) -> None:
        path = self._api.path("v1", "Pod", self._training.namespace)
        query: dict[str, Any] = {"labelSelector": f"{NAME_LABEL}={self._training.name}"}
        if self._version is None:
            answer = json.loads(self._api.call("GET", path, query=query, what="pods of the run"))
            self._version = answer["metadata"]["resourceVersion"]
            listed = {pod["metadata"]["name"]: pod for pod in answer["items"]}
            self.gone |= set(self.pods) - set(listed)
            self.pods |= listed
            return
        query |= {"watch": "1", "resourceVersion": self._version, "timeoutSeconds": WATCH_SECONDS}
        query |= {"allowWatchBookmarks": "true"}
        for line in self._api.call("GET", path, query=query, what="changes of the pods").splitlines():
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise KubeError("The watch is too old.", status=int(event["object"].get("code", 410)))
            self._version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            name = event["object"]["metadata"]["name"]
            self.pods[name] = event["object"]
            if event["type"] == "DELETED":
                self.gone.add(name)

    def _log(self, pod: str, tail: int | None) -> str:
        """A log, or nothing while the node does not answer: the run goes on without being looked at."""
        try:
            return self._api.log(self._training.namespace, pod, tail=tail)
        except KubeError as error:
            if error.transient or error.status == 500:
                return ""
            raise


def _merge(known: list[Event], new: list[Event]) -> list[Event]:
    """Known events, then those of the log's end that are not known yet; a restarted chief begins its log anew."""
    if not known or not new:
        return new or known
    after = known[-1].get("time", 0)
    return known + [event for event in new if event.get("time", 0) >= after and event not in known[-CHIEF_TAIL:]]
