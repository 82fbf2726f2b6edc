"""Crashes of a run before its first step: the second one with the same error is final."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from ..core.untrusted import at, mapping, moment
from ..kube.api import Object
from ..kube.pod_log import last_lines
from .pod_places import place_of
from .roles import EXIT_STALLED, EXIT_STOPPED

LOST_PEER = re.compile(
    r"UnavailableError|AbortedError|failed to connect to all addresses|Connection reset by peer|Connection refused"
    r"|Connection closed by remote peer|Socket closed|CoordinationService.{0,200}(?:UNAVAILABLE|lost)"
)
"""Errors of a process that has lost another one (gRPC, gloo, TensorFlow's coordination service)."""
SHORT = timedelta(seconds=300)
"""A process that ran for longer may have made progress that it does not report."""
WIDTH = 300
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
"""Addresses, times and numbers, which differ between two starts."""


class Crashes:
    """The crashes of one attempt, by place and error."""

    def __init__(self) -> None:
        self._pods: set[str] = set()
        self._errors: dict[str, set[str]] = {}

    def repeated(self, pods: Iterable[Object], text_of: Callable[[str], str]) -> str:
        """Return the error with which a second pod of one place has ended; empty without one.

        Ends that another pod or the cluster has caused do not count: a lost peer, a preemption, a deletion, a stall.

        :param pods: all pods of the run that were seen, in any order.
        :param text_of: returns the log of a pod by its name.
        """
        for pod in pods:
            name = pod["metadata"]["name"]
            how = _crash(pod)
            if name in self._pods or how is None:
                continue
            self._pods.add(name)
            line = "".join(last_lines(text_of(name), 1))[:WIDTH]
            if LOST_PEER.search(line):
                continue
            code = how.get("exitCode")
            error = f"{code} {_CHANGING.sub('N', line)}"
            before = self._errors.setdefault(place_of(pod), set())
            if error in before:
                return line or f"exit code {code}"
            before.add(error)
        return ""


def _crash(pod: Object) -> dict[str, Any] | None:
    """Return the termination of a pod that crashed soon after its start; None for any other pod."""
    meta, status = pod["metadata"], mapping(pod.get("status"))
    disrupted = any(each.get("type") == "DisruptionTarget" for each in status.get("conditions") or [])
    if disrupted or "deletionTimestamp" in meta:
        return None
    for each in status.get("containerStatuses") or []:
        how = mapping(at(each, "state", "terminated"))
        if how.get("exitCode") in (None, 0, EXIT_STOPPED, EXIT_STALLED):
            continue
        begin, end = moment(how.get("startedAt")), moment(how.get("finishedAt"))
        if begin and end and end - begin < SHORT:
            return dict(how)
    return None
