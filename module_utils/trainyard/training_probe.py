"""The stranger: a pod outside a run that tries the run's ps port while the training uses it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from ansible.module_utils.trainyard.kube import Api, KubeError
from ansible.module_utils.trainyard.training_logs import Event, events, isolation
from ansible.module_utils.trainyard.training_objects import probe, probe_name
from ansible.module_utils.trainyard.training_spec import Training

SECONDS = 600
"""How long the stranger goes on trying if nobody deletes it."""


class Stranger:
    """Exists from the start of a run, so that it is ready when the first step comes, and goes as soon as it has its
    answer, at the latest with the `with` block.

    :param control: `host,port` that it must reach, to show that its network works.
    """

    def __init__(self, api: Api, training: Training, *, control: str, enabled: bool) -> None:
        self._api = api
        self._training = training
        self._objects = probe(training, control, seconds=SECONDS)
        self._enabled = enabled
        self._running = False
        self._attempts: list[Event] = []

    def __enter__(self) -> Stranger:
        if self._enabled:
            self._remove()  # one that an interrupted run left
            for obj in self._objects:
                self._api.apply(obj)
            self._running = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running:
            self._remove()

    def watch(self, chief: Sequence[Event]) -> None:
        """Read its attempts once the training makes steps; let it go when they answer the question."""
        if self._running and any(event["event"] == "step" for event in chief):
            self.attempts()
            if isolation(self._attempts, chief)["stranger_blocked"] is not None:
                self._remove()
                self._running = False

    def attempts(self) -> list[Event]:
        """All attempts so far."""
        if self._running:
            text = self._api.log(self._training.namespace, probe_name(self._training))
            self._attempts = events(text, "target") or self._attempts
        return self._attempts

    def _remove(self) -> None:
        for obj in reversed(self._objects):
            meta = obj["metadata"]
            try:
                self._api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"], grace=0)
            except KubeError as error:
                if not error.transient:
                    raise
