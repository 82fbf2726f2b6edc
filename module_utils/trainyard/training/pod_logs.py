"""Reading the logs of a run's pods, each from where the last reading ended, and keeping them on the controller."""

from __future__ import annotations

from collections.abc import Iterable

from ..kube.api import Api, KubeError, Object
from .kept_logs import KeptLogs
from .logs import Event, events
from .places import pod_state, role_of, started
from .state import UNKNOWN_ATTEMPT

TAIL = 1_000
"""Lines that are asked for at a time: a node finds the end of a log at once, and a time in it by reading all."""


def kept_logs(log_dir: str, namespace: str, run: str, attempt: str) -> KeptLogs:
    """The kept logs of an attempt at a run; of none where `log_dir` is empty."""
    return KeptLogs(log_dir, f"{namespace}-{run}", attempt or UNKNOWN_ATTEMPT) if log_dir else KeptLogs()


class PodLogs:
    """The logs of one attempt.

    :param kept: receives what is read; it may keep nothing.
    :param first: lines that the first reading of a pod asks for, from the end; None for all.
    """

    def __init__(self, api: Api, kept: KeptLogs, first: int | None = None) -> None:
        self._api = api
        self._first = first
        self._until: dict[str, str] = {}
        self._said: dict[str, list[Event]] = {}
        self._whole: set[str] = set()
        self.kept = kept

    def read(self, pod: Object) -> None:
        """Keep what a pod has said since the last reading; nothing while it, or its node, does not answer."""
        name = pod["metadata"]["name"]
        if not started(pod):
            return
        since = self._until.get(name, "")
        lines = self._lines(pod, since, TAIL if since else self._first)
        if lines and since and len(lines) >= TAIL and lines[0][0] > since:
            # There is more than that, and some of it would be missed.
            lines = self._lines(pod, since, None)
        if lines is None:
            return
        # The server knows whole seconds only, so lines of the last one come again.
        new = [(stamp, text) for stamp, text in lines if stamp > since]
        text = "".join(f"{text}\n" for _, text in new)
        if self.kept.folder and (text or not since):
            self.kept.keep(name, role_of(pod), text, more=bool(since))
        if new:
            self._until[name] = new[-1][0]
            self._said.setdefault(name, []).extend(events(text))
        # A pod that is gone has an empty log, too, so what seems to say nothing is looked for.
        if pod_state(pod)[0] == "ended" and (lines or self._is_there(pod)):
            self._whole.add(name)

    def read_all(self, pods: Iterable[Object]) -> None:
        for pod in pods:
            self.read(pod)

    def said(self, pod: Object | None) -> list[Event]:
        """All events that a pod has written; where its log cannot be read, those that somebody has kept before."""
        if not pod:
            return []
        name = pod["metadata"]["name"]
        return self._said.get(name, []) if name in self._until else events(self.kept.text(name))

    def is_whole(self, pod: Object) -> bool:
        """Whether a pod has ended and all that it has said was read."""
        return pod["metadata"]["name"] in self._whole

    def _is_there(self, pod: Object) -> bool:
        meta = pod["metadata"]
        try:
            return self._api.get("v1", "Pod", meta["name"], meta["namespace"]) is not None
        except KubeError:
            return False

    def _lines(self, pod: Object, since: str, tail: int | None) -> list[tuple[str, str]] | None:
        """Lines with their times; None while the pod, or its node, does not answer."""
        meta = pod["metadata"]
        try:
            text = self._api.log(meta["namespace"], meta["name"], tail=tail, stamped=True, since=since)
        except KubeError as error:
            if error.transient or error.status == 500:
                return None
            raise
        return [(stamp, line) for stamp, _, line in (each.partition(" ") for each in text.splitlines())]
