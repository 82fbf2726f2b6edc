"""The isolation probe of a user's run of several pods: they reach each other on any port, and nothing else does.

The ports of a user's program are unknown. So three small pods try it once the run has succeeded: a target and a member
have the run's label, and thus its policy, and an outsider has not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import at
from ..core.waiter import CLOCK, Clock, wait_until
from ..kube.api import Api, Object
from ..kube.apply import PatientApi
from .log_events import Event, events, evidence
from .model import Training
from .names import NAME_LABEL, PROBE_LABEL
from .objects import policy
from .pod_places import STUCK, pod_state
from .probe import (
    PROBE_PROGRAM,
    REPEAT_SECONDS,
    delete_all,
    log_of,
    probe_name,
    probe_objects,
    small_pod,
    target_name,
)

PORTS = 2
LOWEST, HIGHEST = 20_000, 60_000
"""Range from which the ports are drawn. Kubernetes uses none of it in the network of a pod."""
TRIES = 2
"""Attempts of the outsider on each port that count: those after the member has connected to all ports."""

TARGET_PROGRAM = """\
import selectors, socket, sys, time

waits = selectors.DefaultSelector()
for port in sys.argv[2:]:
    waits.register(socket.create_server(("", int(port))), selectors.EVENT_READ)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    for key, _ in waits.select(0.5):
        key.fileobj.accept()[0].close()
"""
"""Program that listens on the ports and closes each connection."""

_CANNOT_START = (*STUCK, "CreateContainerError", "RunContainerError")
Evidence = dict[str, Any]


def is_tried(training: Training) -> bool:
    """Return whether a run has several pods that a user's program connects to each other."""
    return training.probed is None and bool(training.ports) and sum(r.replicas for r in training.roles.values()) > 1


def member_name(training: Training) -> str:
    return f"{training.name}-member"


def probe_pods(training: Training, control: str = "", address: str = "", ports: Sequence[int] = ()) -> list[Object]:
    """Return the target, the policy of the outsider, the member and the outsider; empty if the run is not tried.

    :param control: `host,port` that must answer, to show that their network works.
    :param address: of the target.
    """
    if not is_tried(training):
        return []
    role, seconds = training.decider, REPEAT_SECONDS
    inside = {NAME_LABEL: training.name, PROBE_LABEL: member_name(training)}
    outside = {PROBE_LABEL: training.name}
    tries = [str(seconds), f"control,{control}", *(f"target,{address},{port}" for port in ports)]
    listens = [str(seconds), *map(str, ports)]
    selector = {"podSelector": {"matchLabels": outside}, "policyTypes": ["Egress"], "egress": [{}]}
    make = partial(small_pod, training, role, seconds=seconds)
    return [
        make(target_name(training), inside, TARGET_PROGRAM, listens),
        policy(training, probe_name(training), selector),
        make(member_name(training), inside, PROBE_PROGRAM, tries),
        make(probe_name(training), outside, PROBE_PROGRAM, tries),
    ]


def left_behind(training: Training) -> list[Object]:
    """Return all objects that a probe of a run may have left behind."""
    return [*probe_objects(training), *probe_pods(training)]


def probe_ports(plain: Api, training: Training, control: str, clock: Clock = CLOCK) -> Evidence:
    """Try the ports, and return evidence in the form of `log_events.isolation`.

    Pods that do not start, or a network that does not work, are no evidence: the run itself has succeeded.
    """
    api = PatientApi(plain, clock)
    ports = random.sample(range(LOWEST, HIGHEST), PORTS)
    objects = probe_pods(training, control, "", ports)
    judge = Judge(ports)
    try:
        delete_all(api, objects)
        api.apply(objects[0])
        address = wait_until(
            partial(_address, api, objects[0]), bool, what=f"{target_name(training)} to run",
            timeout=REPEAT_SECONDS, clock=clock,
        )  # fmt: skip
        for obj in probe_pods(training, control, address, ports)[1:]:
            api.apply(obj)
        return wait_until(
            partial(_judged, judge, api, training, [objects[2], objects[3]]),
            lambda found: found["stranger_blocked"] is not None,
            what="evidence of the isolation probe",
            timeout=REPEAT_SECONDS,
            show=lambda found: str(found["detail"]),
            clock=clock,
        )
    except TrainyardError as error:
        return evidence(None, error.message)
    finally:
        delete_all(api, objects)


def _address(api: Api, pod: Object) -> str:
    """Return the address of a pod once it runs, else empty.

    :raises TrainyardError: it has ended or cannot start, as in an image without Python.
    """
    meta = pod["metadata"]
    live = api.get("v1", "Pod", meta["name"], meta["namespace"]) or {"metadata": meta}
    state, reason = pod_state(live)
    if state == "ended" or reason.startswith(_CANNOT_START):
        raise TrainyardError(f"the isolation probe did not start in the image of the run: {reason or 'it has ended'}")
    return str(at(live, "status", "podIP") or "") if state == "running" else ""


def _judged(judge: Judge, api: Api, training: Training, pods: Sequence[Object]) -> Evidence:
    member, outsider = (events(log_of(api, training, pod["metadata"]["name"]), "target") for pod in pods)
    found = judge.look(member, outsider)
    if found["stranger_blocked"] is None:
        for pod in pods:
            _address(api, pod)
    return found


class Judge:
    """The comparison of what member and outsider have reported.

    Only the order of the readings counts, because the clocks of two nodes differ.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = set(ports)
        self._before: Counter[int] | None = None

    def look(self, member: Sequence[Event], outsider: Sequence[Event]) -> Evidence:
        """Return evidence from the whole logs so far, in the form of `log_events.isolation`."""
        if reached := sorted(_connected(outsider) & self._ports):
            return evidence(False, f"a pod outside the run connected to port {reached[0]} of a pod of the run")
        if not self._ports <= _connected(member):
            return evidence(None, "no pod of the run has connected to all ports of another one")
        if not any(_is(each, "control", "connected") for each in outsider):
            return evidence(None, "the isolation probe reached nothing: it did not run, or its network did not work")
        tries = Counter(int(each["port"]) for each in outsider if _is(each, "target", "timeout", "refused"))
        if self._before is None:
            self._before = tries
        # The first one may have begun before.
        if any(tries[port] - self._before[port] <= TRIES for port in self._ports):
            return evidence(None, "the isolation probe made too few attempts")
        shown = " and ".join(map(str, sorted(self._ports)))
        count = sum(tries[port] - self._before[port] for port in self._ports)
        return evidence(
            True, f"attempts on the ports {shown}, without a connection: {count}; a pod of the run connected to both"
        )


def _connected(attempts: Sequence[Event]) -> set[int]:
    return {int(each["port"]) for each in attempts if _is(each, "target", "connected")}


def _is(attempt: Mapping[str, Any], target: str, *outcomes: str) -> bool:
    known = isinstance(attempt.get("port"), int) and not isinstance(attempt.get("port"), bool)
    return known and attempt.get("target") == target and attempt.get("outcome") in outcomes
