"""The objects and pods of one run, kept up to date by watches."""

from __future__ import annotations

from collections.abc import Callable

from ..kube.api import Object
from ..kube.reads import Get
from ..trainings.names import JOB_API, JOBSET_API, NAME_LABEL
from ..trainings.places import decider, newest, started
from .watch import Watch

USUAL = ("chief-0", "worker-0", "server-0")
"""Places that decide a run whose object does not name one."""


class Seen:
    """The objects of one run.

    :param changed: called when one of its objects has changed.
    :param happened: called for each event about it in its namespace.
    """

    def __init__(self, namespace: str, run: str, changed: Callable[[], None], happened: Callable[[], None]) -> None:
        self._run = run
        own = {"labelSelector": f"{NAME_LABEL}={run}"}

        def tell(kind: str, obj: Object) -> None:
            changed()

        def tell_of_event(kind: str, event: Object) -> None:
            about = str((event.get("involvedObject") or {}).get("name", ""))
            if about == run or about.startswith(f"{run}-"):
                happened()

        self._jobsets = Watch(f"/apis/{JOBSET_API}/namespaces/{namespace}/jobsets", own, tell)
        self._jobs = Watch(f"/apis/{JOB_API}/namespaces/{namespace}/jobs", own, tell)
        self._pods = Watch(f"/api/v1/namespaces/{namespace}/pods", own, tell)
        events = Watch(f"/api/v1/namespaces/{namespace}/events", {}, tell_of_event, kept=False)
        self.watches = (self._jobsets, self._jobs, self._pods, events)
        self.heard_out = ""
        """The uid of the pod whose log was read to its end."""

    def release(self) -> None:
        """Drop the objects of the watches, because no reader is left."""
        for watch in self.watches:
            watch.release()

    def answer(self, wanted: Get) -> Object | None:
        """Return the answer that the server would give to a request for a watched list; None for other requests."""
        for watch in (self._jobsets, self._jobs, self._pods):
            if watch.synced and (wanted.path, dict(wanted.query)) == (watch.path, watch.query):
                return watch.as_list()
        return None

    def path_of(self, pod: Object) -> str:
        return f"{self._pods.path}/{pod['metadata']['name']}"

    def deciding(self) -> Object | None:
        """Return the pod whose end ends the run."""
        places, live = newest(self._pods.items), self._live()
        return next((places[each] for each in (decider(live), *USUAL) if each in places), None)

    def unheard(self) -> Object | None:
        """Return the deciding pod if it has started and its log was not read to its end."""
        pod = self.deciding()
        return pod if pod and started(pod) and pod["metadata"]["uid"] != self.heard_out else None

    def _live(self) -> Object | None:
        """Return the JobSet or Job of the run; None for a service."""
        kinds = (("JobSet", self._jobsets), ("Job", self._jobs))
        named = [{"kind": kind, **each} for kind, watch in kinds for each in watch.items]
        return next((each for each in named if each["metadata"]["name"] == self._run), None)
