"""The stranger: a pod outside a run that tries the run's ps port while the training uses it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any

from ..kube.api import Api, KubeError, Object
from ..kube.apply import retry
from .logs import IN_USE, Event, events, isolation
from .objects import probe, probe_name
from .spec import Training

SECONDS = 600
"""How long the stranger goes on trying if nobody deletes it."""
APPLY_SECONDS = 30.0


def stranger_objects(training: Training, control: str = "") -> list[Object]:
    """The stranger's network policy and pod."""
    return probe(training, control, seconds=SECONDS)


class Stranger:
    """A pod that is not of the run and tries its port.

    Created before the run, deleted when the question is answered, at the latest at the end of the block. One that an
    interrupted watch left goes on.

    :param control: `host,port` that it must reach, to show that its network works.
    """

    def __init__(self, api: Api, training: Training, *, control: str, enabled: bool) -> None:
        self._api = api
        self._training = training
        self._objects = stranger_objects(training, control)
        self._enabled = enabled
        self._running = False
        self._evidence: dict[str, Any] = {}

    def __enter__(self) -> Stranger:
        if self._enabled:
            for obj in self._objects:
                retry(partial(self._api.apply, obj), timeout=APPLY_SECONDS)
            self._running = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running:
            self._remove()

    def watch(self, chief: Sequence[Event]) -> None:
        """Look at its attempts once the training uses the port; let it go when they answer the question."""
        if self._running and any(event["event"] in IN_USE for event in chief):
            self.evidence(chief)

    def evidence(self, chief: Sequence[Event]) -> dict[str, Any]:
        """What is known by now, as `training_logs.isolation` says it."""
        if not self._enabled:
            return {"stranger_blocked": None, "detail": "isolation_probe is off"}
        if self._running:
            text = self._api.log(self._training.namespace, probe_name(self._training))
            self._evidence = isolation(events(text, "target"), chief)
            if self._evidence["stranger_blocked"] is not None:
                self._remove()
                self._running = False
        return self._evidence

    def _remove(self) -> None:
        for obj in reversed(self._objects):
            meta = obj["metadata"]
            try:
                self._api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"], grace=0)
            except KubeError as error:
                if not error.transient:
                    raise
