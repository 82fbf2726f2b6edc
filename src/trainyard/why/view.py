"""A snapshot prepared for the rules: pods by place, events by object, events of the run's logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from ..core.untrusted import number
from ..kube.api import Object
from ..kube.reads import Unread
from ..trainings import record as records
from ..trainings.log_events import Event, events, last
from ..trainings.names import NAME_LABEL, TOPOLOGY_ANNOTATION
from ..trainings.pod_places import age_order, decider, newest, place_of, pod_state
from ..trainings.run_state import attempt_of, created, ended, knobs
from .snapshot import Snapshot

IMPORT = "import"
"""Place of the pod that imports a run's data."""
STALL_SECONDS = 120.0
"""Default of a run's `stall_timeout`."""


class CannotTell(Exception):
    """Raised if a rule needs a part that could not be read.

    :param what: name of the part of the snapshot.
    """

    def __init__(self, what: str, unread: Unread) -> None:
        super().__init__(unread.reason)
        self.what, self.unread = what, unread


class View:
    """One snapshot. Access to a part that could not be read raises `CannotTell`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now = datetime.fromisoformat(snapshot.time)
        self.live = snapshot.live

    def part(self, name: str) -> list[Object]:
        """Return the objects of one part of the snapshot.

        :raises CannotTell: they could not be read.
        """
        found = self.snapshot.parts.get(name, [])
        if isinstance(found, Unread):
            raise CannotTell(name, found)
        return found

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The record of the existing attempt, or else of the last one; empty if there is none."""
        known = records.read(self.snapshot.record)
        if self.live and known.get("attempt", attempt_of(self.live)) != attempt_of(self.live):
            return {}
        return known

    @cached_property
    def goes_on(self) -> bool:
        """Whether the run is active, or its data is being imported."""
        return (self.live is not None and ended(self.live) is None) or (self.live is None and self.importing)

    @cached_property
    def importing(self) -> bool:
        """Whether its data is being imported."""
        jobs = [each for each in self.part("jobs") if each["metadata"]["name"] == f"{self.snapshot.run}-import"]
        return any(ended({**each, "kind": "Job"}) is None for each in jobs)

    @cached_property
    def jobs(self) -> list[Object]:
        """The Jobs of the run: those of its JobSet, the run itself if it is a Job, and the import of its data."""
        uid = ((self.live or {}).get("metadata") or {}).get("uid", "")
        mine = (self.snapshot.run, f"{self.snapshot.run}-import")
        named = [(each, each["metadata"]) for each in self.part("jobs")]
        owners = [[one.get("uid") for one in meta.get("ownerReferences") or ()] for _, meta in named]
        return [each for (each, meta), of in zip(named, owners, strict=True) if meta["name"] in mine or uid in of]

    @cached_property
    def pods(self) -> dict[str, Object]:
        """The newest pod of each place, including `import` during the import."""
        found = newest(pod for pod in self.all_pods if not _imports(pod, self.snapshot.run))
        imports = [pod for pod in self.all_pods if _imports(pod, self.snapshot.run)]
        return {**found, **({IMPORT: max(imports, key=age_order)} if imports and self.importing else {})}

    @cached_property
    def all_pods(self) -> list[Object]:
        """All pods of the run, including replaced ones; pods being deleted only if they have ended."""
        return [pod for pod in self.part("pods") if pod_state(pod)[0] == "ended" or not _leaves(pod)]

    def place(self, pod: Object) -> str:
        """Return the place of a pod: `worker-1`, or `import`."""
        return IMPORT if _imports(pod, self.snapshot.run) else place_of(pod)

    @property
    def deciding(self) -> str:
        """The place whose end ends the run."""
        return decider(self.live) or ("chief-0" if self.live is None else "")

    @property
    def topology(self) -> str:
        """The topology of the run."""
        meta = (self.live or {}).get("metadata") or {}
        return str((meta.get("annotations") or {}).get(TOPOLOGY_ANNOTATION) or self.record.get("topology") or "")

    @cached_property
    def waiting(self) -> dict[str, Object]:
        """The pods that are not running yet."""
        return (
            {place: pod for place, pod in self.pods.items() if pod_state(pod)[0] == "waiting"} if self.goes_on else {}
        )

    def events(self, obj: Object, *reasons: str) -> list[Object]:
        """Return the events of an object, the newest last, matched by uid: an earlier object may have had its name.

        :param reasons: reasons to include; all if none is given.
        :raises CannotTell: they could not be read.
        """
        uid = obj["metadata"].get("uid")
        mine = [
            each
            for each in self.part("events")
            if (each.get("involvedObject") or {}).get("uid") == uid and (not reasons or each.get("reason") in reasons)
        ]
        return sorted(mine, key=event_time)

    def log(self, pod: Object) -> str:
        """Return the last lines of a pod's log.

        :raises CannotTell: it could not be read.
        """
        name = pod["metadata"]["name"]
        found = self.snapshot.logs.get(name, "")
        if isinstance(found, Unread):
            raise CannotTell(f"log of {name}", found)
        return found

    def said(self, pod: Object | None) -> list[Event]:
        """Return the events in the log of a pod, which are its JSON lines."""
        return events(self.log(pod)) if pod else []

    @property
    def chief(self) -> Object | None:
        """The deciding pod."""
        return self.pods.get(self.deciding)

    @property
    def story(self) -> list[Event]:
        """The events in the log of the deciding pod; empty if it cannot be read."""
        try:
            return self.said(self.chief)
        except CannotTell:
            return []

    @property
    def step(self) -> Event:
        """The last reported step; empty before the first."""
        return last(self.story, "step")

    @property
    def steps_since(self) -> float:
        """Time of the last reported step, seconds since the epoch; 0 before the first."""
        return number(self.step.get("time")) or 0.0

    @cached_property
    def stall_timeout(self) -> float:
        """Seconds without a step after which the run's own watchdog ends it."""
        found = number(knobs(self.live).get("stall_timeout"), 0)
        return STALL_SECONDS if found is None else found

    @cached_property
    def watched(self) -> bool:
        """Whether the run's program has a watchdog of its own, which ends it after `stall_timeout`."""
        return not {"train_steps", "stall_timeout"}.isdisjoint(knobs(self.live))

    def node(self, name: str) -> Object | None:
        """Return a node of the cluster; None if there is none of this name.

        :raises CannotTell: nodes could not be read.
        """
        return next((each for each in self.part("nodes") if each["metadata"]["name"] == name), None)

    def system(self, namespace: str, **labels: str) -> list[Object]:
        """Return the system pods with these labels.

        :raises CannotTell: pods of other namespaces could not be read.
        """
        return [
            pod
            for pod in self.part("everyone")
            if pod["metadata"]["namespace"] == namespace
            and labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def age(self, when: str) -> float:
        """Return the seconds since a time in the cluster's format; 0 if it is no time."""
        then = at(when)
        return max(0.0, (self.now - then).total_seconds()) if then else 0.0

    @property
    def submitted(self) -> str:
        """Time at which the run was submitted."""
        return created(self.live) or str(self.record.get("submitted_at", ""))


def event_time(event: Mapping[str, Any]) -> str:
    """Return the time at which an event was last seen, in the cluster's format."""
    series = event.get("series") or {}
    meta = event.get("metadata") or {}
    found = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(found or meta.get("creationTimestamp") or "")


def at(when: str) -> datetime | None:
    """Parse a time in the cluster's format; None if it is no time."""
    try:
        then = datetime.fromisoformat(when)
    except ValueError:
        return None
    return then.replace(tzinfo=then.tzinfo or UTC)


def ready(pod: Object) -> bool:
    """Return whether a pod is Ready and not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return not _leaves(pod) and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def containers(pod: Object) -> Iterator[Object]:
    """Yield the states of a pod's containers, init containers first."""
    status = pod.get("status") or {}
    yield from [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def terminated(pod: Object) -> Object:
    """Return the termination of the first container of a pod that has ended; empty if none has."""
    ends = [(each.get("state") or {}).get("terminated") for each in containers(pod)]
    return next((each for each in ends if each), {})


def _leaves(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _imports(pod: Object, run: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(NAME_LABEL) == f"{run}.import")
