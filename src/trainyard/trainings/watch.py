"""Watch a run's pods: every change, the exit codes of deleted pods, and the reasons of waiting pods."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ..core.untrusted import line as one_line
from ..core.waiter import CLOCK, Clock
from ..kube.api import Api, KubeError, Object
from ..kube.apply import OUTAGE_SECONDS, PatientApi
from . import run_state as state
from .log_events import Event, last
from .model import Training
from .names import API_VERSIONS, NAME_LABEL, PROBE_LABEL
from .pod_logs import PodLogs
from .pod_places import age_order, newest, place_of, pod_state, pulls

WATCH_SECONDS = 1
"""Duration of each watch request. It sets the pace of the whole wait."""
END_SECONDS, END_LIMIT = 0.2, 3.0
"""Interval and time limit of reading the live object after the deciding pod has ended."""
OTHERS_SECONDS = 30.0
"""Interval of reading the logs of the other pods while they run."""
LOOKS_WITHOUT_A_CHANGE = 5
"""Number of refreshes after which the live object is read, even if none of its pods has changed."""


class RunView:
    """The server's view of a run, updated by `refresh`.

    It uses a watch, because a list would miss the exit code of a pod that the end of the run deletes.
    """

    def __init__(self, api: Api, training: Training, logs: PodLogs, clock: Clock = CLOCK) -> None:
        self._api = api
        self._training = training
        self._logs = logs
        self._clock = clock
        self._version: str | None = None
        self._looks = 0
        self._left: set[str] = set()
        self._ended: set[str] = set()
        self._mute: set[str] = set()
        self._answered = self._all_read = clock.monotonic()
        self.known = False
        """True once the server has answered."""
        self.pods: dict[str, Object] = {}
        self.gone: set[str] = set()
        self.live: Object | None = None

    @property
    def chief(self) -> list[Event]:
        """Events of the deciding pod and of its predecessors in the same place."""
        place = self._training.deciding
        mine = [pod for pod in self.pods.values() if place_of(pod) == place]
        return [event for pod in sorted(mine, key=age_order) for event in self._logs.said(pod)]

    @property
    def in_place(self) -> list[Event]:
        """Events of the current deciding pod alone, because no port is in use between two of them."""
        return self._logs.said(newest(self.pods.values()).get(self._training.deciding))

    @property
    def refused(self) -> str:
        """Why the last event of the deciding pod that was refused is none; empty if each was understood."""
        return self._logs.refused(newest(self.pods.values()).get(self._training.deciding))

    def refresh(self) -> None:
        """Process about a second of changes: pods, the live object, the log of the deciding pod.

        :raises KubeError: the server refuses, or has not answered for `OUTAGE_SECONDS` (the training keeps running).
        """
        try:
            self._refresh()
            self._answered, self.known = self._clock.monotonic(), True
        except KubeError as error:
            if error.status == 410:  # the watch is too old; the next refresh lists
                self._version = None
            elif not error.transient or self._clock.monotonic() - self._answered > OUTAGE_SECONDS:
                raise
            self._clock.sleep(WATCH_SECONDS)

    def _refresh(self) -> None:
        changed = self._changes()
        decider = newest(self.pods.values()).get(self._training.deciding)
        ended = decider is not None and pod_state(decider)[0] == "ended"
        if changed or self._looks % LOOKS_WITHOUT_A_CHANGE == 0 or ended:
            self.live = self._found()
        self._looks += 1
        self._read_logs(decider, changed)
        if ended:
            self._await_end()

    def _await_end(self) -> None:
        """Wait until the live object reflects the end of the deciding pod: a moment later, without a pod change."""
        deadline, restarts = self._clock.monotonic() + END_LIMIT, self.restarts
        while self.live and not any(map(self.condition, ("Completed", "Failed"))) and self.restarts == restarts:
            if self._clock.monotonic() >= deadline:
                break
            self._clock.sleep(END_SECONDS)
            self.live = self._found()

    def _read_logs(self, decider: Object | None, changed: set[str]) -> None:
        """Read the log of the deciding pod, and those of the others when they end or terminate, and periodically."""
        all_due = self._clock.monotonic() - self._all_read >= OTHERS_SECONDS
        if all_due:
            self._all_read = self._clock.monotonic()
        for name, pod in self.pods.items():
            leaves = pod_state(pod)[0] == "ended"
            if name in self.gone or name in self._left:
                continue
            # A terminating pod may write its last lines at any moment. Each try is slow if its node does not answer.
            stops = "deletionTimestamp" in pod["metadata"] and (name in changed or name not in self._mute)
            if stops or (leaves and name in changed) or all_due or name in self._ended or pod is decider:
                (self._mute.discard if self._logs.read(pod) else self._mute.add)(name)
            # Read an ended pod once more: its runtime may write the last lines after its end is reported.
            if name in self._ended:
                self._left.add(name)
            elif leaves:
                self._ended.add(name)

    def keep_logs(self) -> None:
        """Read the logs of all existing pods to their current ends."""
        self._logs.read_all(pod for name, pod in self.pods.items() if name not in self.gone)

    def read_decider(self) -> bool:
        """Read the log of the deciding pod to its current end; return False if that pod is gone."""
        pod = self.present().get(self._training.deciding)
        if pod is None or self._is_gone(pod):
            return False
        self._logs.read(pod)
        return True

    @property
    def unread(self) -> str:
        """The last lines of the deciding pod that are missing, and their place, in words; empty if they were read."""
        place = self._training.deciding
        pod = self.present().get(place)
        if pod is None:
            return f"its pod {place}, whose log has the result, is no longer in the cluster"
        if self._logs.is_whole(pod) or last(self._logs.said(pod), "end"):
            return ""
        where = f"{pod['metadata']['name']} on the node {(pod.get('spec') or {}).get('nodeName', '?')}"
        return (
            f"its pod {where} was deleted before its log was read"
            if self._is_gone(pod)
            else f"the log of its pod {where} was not read"
        )

    def _is_gone(self, pod: Object) -> bool:
        return pod["metadata"]["name"] in self.gone

    def condition(self, kind: str) -> Object:
        """Return a true condition of the run (Completed, Failed); empty if it does not hold."""
        return state.condition(self.live, kind)

    @property
    def restarts(self) -> int:
        return state.restarts(self.live)

    @property
    def counted_restarts(self) -> int:
        return state.counted_restarts(self.live)

    def seconds(self) -> float | None:
        """Return the seconds from submission to completion by the cluster's clock, in whole seconds."""
        return state.seconds(self.live)

    def _found(self) -> Object | None:
        kind = self._training.shape.back_end
        found = self._api.get(API_VERSIONS[kind], kind, self._training.name, self._training.namespace)
        return {**found, "kind": kind} if found else None

    def age(self) -> float:
        """Return the seconds since the submission by this machine's clock; 0 before the live object is known."""
        created = state.created(self.live)
        return max(0.0, self._clock.time() - datetime.fromisoformat(created).timestamp()) if created else 0.0

    def present(self) -> dict[str, Object]:
        """Return the newest pod of each place, by `role-index`."""
        return newest(self.pods.values())

    def all_started(self) -> bool:
        wanted = sum(role.replicas for role in self._training.roles.values())
        states = [pod_state(pod)[0] for pod in self.present().values()]
        return len(states) == wanted and all(state in ("running", "ended") for state in states)

    def pulls(self) -> bool:
        """Return whether a pod of the run waits only for an image that its node is pulling."""
        return any(pulls(pod) for pod in self.present().values())

    def unreleased(self) -> list[str]:
        """Return the names of the run's pods that still hold resources."""
        done = ("Succeeded", "Failed")
        return [
            name
            for name, pod in self.pods.items()
            if name not in self.gone and (pod.get("status") or {}).get("phase") not in done
        ]

    def roles(self) -> dict[str, int | str]:
        """Return the exit code of each place, such as `worker-1`.

        Without an exit code it is `waiting`, `running`, or `stopped` for a pod that was deleted before its exit was
        seen.
        """
        return {place: self._exit(pod) for place, pod in self.present().items()}

    def _exit(self, pod: Object) -> int | str:
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            if "terminated" in status.get("state", {}):
                return int(status["state"]["terminated"]["exitCode"])
        return "stopped" if pod["metadata"]["name"] in self.gone else pod_state(pod)[0]

    def states(self) -> str:
        """Return the states as text: `chief 1/1 running; worker 0/2 running (worker-1 ContainerCreating)`."""
        present = self.present()
        parts = []
        for role, wanted in self._training.roles.items():
            mine = {place: pod_state(pod) for place, pod in present.items() if place.rsplit("-", 1)[0] == role}
            count = sum(state in ("running", "ended") for state, _ in mine.values())
            why = ", ".join(f"{place} {reason}" for place, (state, reason) in mine.items() if state == "waiting")
            parts.append(f"{role} {count}/{wanted.replicas} running" + (f" ({why})" if why else ""))
        return "; ".join(parts)

    def warnings(self) -> list[str]:
        """Return the last warning events about this attempt's objects, for an error message."""
        found = []
        for event in PatientApi(self._api, self._clock).list("v1", "Event", self._training.namespace):
            about = event["involvedObject"].get("name", "")
            when = str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])
            if (
                event.get("type") == "Warning"
                and about.startswith(self._training.name)
                and when >= state.created(self.live)
            ):
                found.append((when, one_line(f"{about}: {event.get('message', '')}", 1_000)))
        return [text for _, text in sorted(found)[-5:]]

    def _changes(self) -> set[str]:
        """Process changed pods and return their names."""
        path = self._api.path("v1", "Pod", self._training.namespace)
        query: dict[str, Any] = {"labelSelector": f"{NAME_LABEL}={self._training.name},!{PROBE_LABEL}"}
        if self._version is None:
            answer = json.loads(self._api.call("GET", path, query=query, what="pods of the run"))
            self._version = answer["metadata"]["resourceVersion"]
            listed = {pod["metadata"]["name"]: pod for pod in answer["items"]}
            self.gone |= set(self.pods) - set(listed)
            self.pods |= listed
            return set(listed)
        query |= {"watch": "1", "resourceVersion": self._version, "timeoutSeconds": WATCH_SECONDS}
        query |= {"allowWatchBookmarks": "true"}
        changed = set()
        for line in filter(None, self._api.call("GET", path, query=query, what="changes of the pods").split("\n")):
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise KubeError("The watch is too old.", status=int(event["object"].get("code", 410)))
            self._version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            name = event["object"]["metadata"]["name"]
            self.pods[name] = event["object"]
            changed.add(name)
            if event["type"] == "DELETED":
                self.gone.add(name)
        return changed
