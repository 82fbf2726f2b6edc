"""Import of a run's data onto its claim before the run is submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from ..core.waiter import wait_until
from ..kube.api import Api, KubeError, Object, describe
from ..kube.patient import PatientApi
from ..kube.pod_log import last_lines
from .closed import networks
from .import_job import IMPORT_SECONDS, around, job, name_of, pod_labels
from .logs import Event, events, last
from .model import Import, Training
from .names import HASH_ANNOTATION, JOB_API
from .places import pod_state
from .state import ended

GONE_SECONDS = 60.0


class DataImport:
    """One import.

    :param say: shows a line of progress to the user.
    """

    def __init__(
        self, api: Api, training: Training, wanted: Import, say: Callable[[str], None], clock: Clock = CLOCK
    ) -> None:
        self._api, self._training, self._wanted = PatientApi(api, clock), training, wanted
        self._clock = clock
        self._say = lambda line: say(f"data of {training.name}: {line}")
        self._job = job(training, wanted)
        self._uid = ""
        """UID of the Job that is followed."""

    def bring(self) -> None:
        """Import the data unless it is on the claim already; continue an interrupted import.

        :raises TrainyardError: the import failed, with the program's own message, or its pod does not start in time.
        """
        self._give_way_to_none()
        for obj in around(self._training, self._wanted, networks(self._api)):
            self._api.apply(obj)
        try:
            self._create()
            self._follow()
        finally:
            self._remove()

    def _give_way_to_none(self) -> None:
        """Delete a Job that has ended or imports other data. A running Job for the same data stays and is followed."""
        live = self._find()
        if live and (ended(live) or _hash(live) != _hash(self._job)):
            self._delete(live)

    def _create(self) -> None:
        """Create the Job, or adopt an existing one, whose creator died or whose creation's response was lost."""
        try:
            made: Object | None = self._api.create(self._job)
        except KubeError as error:
            if error.status != 409:
                raise
            made = self._find()
        if made is None or _hash(made) != _hash(self._job):
            raise self._lost()
        self._uid = _uid(made)

    def _follow(self) -> None:
        said: dict[str, Any] = {"line": "", "waiting": self._training.start_timeout}

        def look() -> Object:
            live, pods = self._find(), self._pods()
            if live is None or _uid(live) != self._uid:
                raise self._lost()
            line, found = self._line(pods)
            if line != said["line"]:
                said["line"] = line
                self._say(line)
            said["waiting"] -= 0 if found or ended(live) else 1
            return live

        live = wait_until(
            look,
            lambda live: bool(ended(live)) or said["waiting"] < 0,
            what=f"the data of the run {self._training.name}",
            timeout=IMPORT_SECONDS,
            show=lambda _: said["line"],
            clock=self._clock,
        )
        if ended(live) != "Completed":
            raise self._failure(said["line"])

    def _line(self, pods: list[Object]) -> tuple[str, list[Event]]:
        """Return the last report of the newest pod, or its state while it reports nothing, and its events."""
        if not pods:
            return "its pod does not exist yet", []
        pod = pods[-1]
        found = events(self._log(pod))
        if not found:
            return f"its pod is {': '.join(filter(None, pod_state(pod)))}", []
        event = found[-1]
        shown = {"end": event.get("result"), "error": event.get("message")}
        bytes_ = f"{event['bytes'] / 1e6:.0f} MB" if isinstance(event.get("bytes"), int | float) else ""
        return ", ".join(str(part) for part in (shown.get(event["event"], event["event"]), bytes_) if part), found

    def _failure(self, line: str) -> TrainyardError:
        pods = self._pods()
        text = self._log(pods[-1]) if pods else ""
        error = last(events(text), "error")
        line = "; ".join([line, *self._warnings()])
        return TrainyardError(
            f"The data of the run {self._training.name} cannot be imported from {self._wanted.url} onto the claim "
            f"{self._training.data_claim}: {error.get('message') or ' '.join(last_lines(text, 3))[-500:] or line}",
            remedy=str(error.get("remedy", "Run this again to continue the import.")),
        )

    def _warnings(self) -> list[str]:
        """Return the last warning event about the Job's pods, which have not started."""
        found = [
            (str(event.get("lastTimestamp") or event["metadata"].get("creationTimestamp")), event.get("message", ""))
            for event in self._api.list("v1", "Event", self._training.namespace)
            if event.get("type") == "Warning"
            and str(event["involvedObject"].get("name", "")).startswith(name_of(self._training))
        ]
        return [message for _, message in sorted(found)[-1:]]

    def _lost(self) -> TrainyardError:
        return TrainyardError(
            f"Another call is importing the data of the run {self._training.name}, and that import continues.",
            remedy="Run this again when it has ended. Data that is on the claim by then is not downloaded again.",
        )

    def _remove(self) -> None:
        """Delete the Job and its supporting objects, unless another user has replaced the Job or may be about to."""
        live = self._find()
        if (_uid(live) if live else "") != self._uid:
            return
        for obj in around(self._training, self._wanted):
            self._api.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], self._training.namespace)
        if live:
            self._delete(live)

    def _delete(self, live: Object) -> None:
        meta = live["metadata"]
        self._api.delete(JOB_API, "Job", meta["name"], self._training.namespace, uid=meta.get("uid", ""))
        wait_until(
            self._find,
            lambda found: found is None,
            what=f"the Job {meta['name']} to be gone",
            timeout=GONE_SECONDS,
            interval=0.5,
            show=lambda found: f"{describe(found or {})} still exists",
            clock=self._clock,
        )

    def _find(self) -> Object | None:
        found = self._api.get(JOB_API, "Job", name_of(self._training), self._training.namespace)
        return {"apiVersion": JOB_API, "kind": "Job", **found} if found else None

    def _pods(self) -> list[Object]:
        labels = ",".join(f"{key}={value}" for key, value in pod_labels(self._training).items())
        found = self._api.list("v1", "Pod", self._training.namespace, labels=labels)
        return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))

    def _log(self, pod: Object) -> str:
        if pod_state(pod)[0] == "waiting":
            return ""
        try:
            return self._api.log(self._training.namespace, pod["metadata"]["name"], tail=50)
        except KubeError as error:
            if error.transient or error.status == 500:
                return ""
            raise


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def _hash(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(HASH_ANNOTATION))
