"""The isolation probe: a pod outside a run that tries a port of the run while the training uses it.

Parts: the pods of the probe, which are pure data and need no cluster; the probe, and its repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any

from ..core.waiter import CLOCK, Clock, wait_until
from ..kube.api import Api, KubeError, Object
from ..kube.apply import OUTAGE_SECONDS, PatientApi, retry
from .log_events import IN_USE, Event, events, evidence, isolation
from .model import Role, Training
from .names import MANAGED, NAME_LABEL, PROBE_LABEL
from .objects import policy
from .pods import container_security, pod_security, pull_secrets
from .template import hostname

PROBE_PROGRAM = """\
import json, socket, sys, time

def attempt(host, port):
    try:
        address = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    except OSError as error:
        return "unresolved", str(error)
    try:
        socket.create_connection(address, 1.0).close()
    except TimeoutError:
        return "timeout", address[0]
    except OSError as error:
        return "refused", str(error)
    return "connected", address[0]

end = time.time() + float(sys.argv[1])
while time.time() < end:
    for name, host, port in (each.split(",") for each in sys.argv[2:]):
        begin = time.time()
        outcome, detail = attempt(host, port)
        seen = {"target": name, "port": int(port), "outcome": outcome, "detail": detail}
        seen |= {"begin": begin, "end": time.time()}
        print(json.dumps(seen), flush=True)
    time.sleep(0.2)
"""
"""Program that tries two addresses repeatedly: `target` is the training's port, `control` is one that must answer."""


TARGET_PROGRAM = """\
import json, socket, sys, time

server = socket.create_server(("", int(sys.argv[1])))
server.settimeout(0.2)
end = time.time() + float(sys.argv[2])
while time.time() < end:
    print(json.dumps({"event": "connected", "time": time.time()}), flush=True)
    try:
        server.accept()[0].close()
    except TimeoutError:
        pass
"""
"""Program that listens in place of a pod of the run, and reports this repeatedly."""


def probe_name(training: Training) -> str:
    return f"{training.name}-stranger"


def probe(training: Training, role: Role, control: str, *, seconds: int, target: str = "") -> list[Object]:
    """Return the isolation probe: a pod of the same image that is not part of the run.

    Its egress is unrestricted, so that only the run's own policy can block it.

    :param role: role whose port it tries.
    :param control: `host,port` that must answer, to show that its network works.
    :param seconds: how long it keeps trying.
    :param target: host that it tries on that port; empty for the role's first pod.
    """
    name = probe_name(training)
    where = f"{target or hostname(training, role.name, 0)},{role.port}"
    arguments = [str(seconds), f"target,{where}", f"control,{control}"]
    labels = {PROBE_LABEL: training.name}
    admitted = policy(
        training, name, {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": [{}]}
    )
    return [admitted, small_pod(training, role, name, labels, PROBE_PROGRAM, arguments, seconds)]


def target_name(training: Training) -> str:
    return f"{training.name}-target"


def target(training: Training, role: Role, *, seconds: int) -> Object:
    """Return a pod with the run's labels that listens on its port, to probe a run that has ended.

    :param seconds: how long it listens.
    """
    labels = {NAME_LABEL: training.name}
    arguments = [str(role.port), str(seconds)]
    return small_pod(training, role, target_name(training), labels, TARGET_PROGRAM, arguments, seconds)


def small_pod(
    training: Training, role: Role, name: str, labels: Object, program: str, arguments: list[str], seconds: int
) -> Object:
    """Return a pod that runs one of the programs above with the Python of the role's image."""
    own = role.command[0] if role.command else ""
    python = own if PurePosixPath(own).name.startswith("python") else "python3"
    container = {
        "name": "probe",
        "image": role.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": [python, "-c", program],
        "args": arguments,
        "resources": {
            "limits": {"cpu": "500m", "memory": "64Mi"},
            "requests": {"cpu": "50m", "memory": "64Mi"},
        },
        "securityContext": container_security(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": training.namespace, "labels": {**MANAGED, **labels}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": seconds + 60,
            **pull_secrets(training),
            "securityContext": pod_security(),
            "containers": [container],
        },
    }


SECONDS = 600
"""Seconds after which the probe stops trying if it is not deleted before."""
REPEAT_SECONDS = 120
"""Time limit of a repeated probe, including the start of its pods."""


def stranger_objects(training: Training, control: str = "") -> list[Object]:
    """Return the probe's network policy and pod; empty if the run has no port to try."""
    return probe(training, training.probed, control, seconds=SECONDS) if training.probed else []


def probe_objects(training: Training) -> list[Object]:
    """Return all objects that a probe of a run or its repetition may have left behind."""
    if not training.probed:
        return []
    return [*stranger_objects(training), target(training, training.probed, seconds=REPEAT_SECONDS)]


class IsolationProbe:
    """The isolation probe of a run, as a context manager.

    Its pod is created before the run and deleted once there is evidence, or at the end of the block. A pod that an
    interrupted follower left behind is reused.

    :param control: `host,port` that it must reach, to show that its network works.
    :param enabled: whether to probe at all.
    """

    def __init__(self, api: Api, training: Training, *, control: str, enabled: bool, clock: Clock = CLOCK) -> None:
        self._api = PatientApi(api, clock)
        self._clock = clock
        self._training = training
        self._objects = stranger_objects(training, control)
        self._why_not = "" if enabled else "isolation_probe is off"
        if not self._objects:
            self._why_not = f"a training of the topology {training.topology} has no port that is known to be in use"
        self._running = False
        self._evidence: dict[str, Any] = {}

    def __enter__(self) -> IsolationProbe:
        if not self._why_not:
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
        """Evaluate its attempts once the training uses the port; delete it when they are conclusive."""
        if self._running and any(event["event"] in IN_USE for event in chief):
            self._compare(chief, self._log)

    def evidence(self, chief: Sequence[Event]) -> dict[str, Any]:
        """Return the evidence so far, in the form of `logs.isolation`."""
        if self._why_not:
            return evidence(None, self._why_not)
        if self._running:
            self._compare(chief, partial(retry, self._log, timeout=OUTAGE_SECONDS, clock=self._clock))
        return self._evidence

    def _log(self) -> str:
        return self._api.log(self._training.namespace, probe_name(self._training))

    def _compare(self, chief: Sequence[Event], read: Callable[[], str]) -> None:
        """Compare its log with the chief's. A server or node that does not answer must not end the following."""
        try:
            self._evidence = isolation(events(read(), "target"), chief)
        except KubeError as error:
            if not (error.transient or error.status == 500):
                raise
            self._evidence = evidence(None, f"its log cannot be read: {error.message}")
        if self._evidence["stranger_blocked"] is not None:
            self._remove()
            self._running = False

    def _remove(self) -> None:
        try:
            for obj in reversed(self._objects):
                meta = obj["metadata"]
                self._api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"], grace=0)
        except KubeError as error:
            if not error.transient:
                raise


def repeat(plain: Api, training: Training, role: Role, control: str, clock: Clock = CLOCK) -> dict[str, Any]:
    """Repeat the probe for a run that has ended: a pod with its labels listens in place of a pod of the role.

    :returns: evidence in the form of `logs.isolation`.
    :raises WaitError: one of the pods does not start, or there is no conclusive evidence.
    """
    api = PatientApi(plain, clock)
    listening = target(training, role, seconds=REPEAT_SECONDS)
    strangers = probe(training, role, control, seconds=REPEAT_SECONDS)
    try:
        delete_all(api, [*strangers, listening])
        api.apply(listening)
        address = wait_until(
            partial(address_of, api, listening), bool, what=f"{target_name(training)} to run", timeout=REPEAT_SECONDS,
            clock=clock,
        )  # fmt: skip
        for obj in probe(training, role, control, seconds=REPEAT_SECONDS, target=address):
            api.apply(obj)
        return wait_until(
            partial(_compared, api, training),
            lambda found: found["stranger_blocked"] is not None,
            what="evidence of the isolation probe",
            timeout=REPEAT_SECONDS,
            show=lambda found: str(found["detail"]),
            clock=clock,
        )
    finally:
        delete_all(api, [*strangers, listening])


def address_of(api: Api, pod: Object) -> str:
    """Return the address of a pod once it runs, else empty."""
    meta = pod["metadata"]
    status = (api.get("v1", "Pod", meta["name"], meta["namespace"]) or {}).get("status") or {}
    return str(status.get("podIP", "")) if status.get("phase") == "Running" else ""


def _compared(api: Api, training: Training) -> dict[str, Any]:
    said = [log_of(api, training, name) for name in (probe_name(training), target_name(training))]
    return isolation(events(said[0], "target"), events(said[1]))


def log_of(api: Api, training: Training, name: str) -> str:
    """Return the log of a pod; empty while it starts."""
    try:
        return api.log(training.namespace, name)
    except KubeError as error:
        if error.transient:
            return ""
        raise


def delete_all(api: Api, objects: Sequence[Object]) -> None:
    for obj in objects:
        meta = obj["metadata"]
        if api.get(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"]):
            api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"], grace=0)
