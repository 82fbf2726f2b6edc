"""The lease in the cluster, which excludes runs on other machines: `kube-system/trainyard-run`.

Clocks of machines differ, and jump. A lease that looks valid counts as valid. A lease that looks expired is watched for
the duration of a lease. It is taken over only if it is not renewed in this time. If two runs race for it, the server
decides by `resourceVersion`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from ..core.errors import TrainyardError
from ..core.waiter import CLOCK, Clock
from ..kube.api import FIELD_MANAGER, Api, KubeError, Object
from .holder import Busy, Holder

NAMESPACE, NAME = "kube-system", "trainyard-run"
API_VERSION = "coordination.k8s.io/v1"
LEASE_SECONDS = 60
RENEW_SECONDS = 15.0
WATCH_SECONDS = 5.0
"""Interval between two reads of a lease that looks expired."""

TRIES = 5
"""Number of tries for a lease that others keep changing."""

PREFIX = "trainyard.dev/"
TEXTS = ("verb", "user", "host", "revision", "boot", "place")


class Lost(TrainyardError):
    """Another run has taken the lease, or it was deleted."""


class Lease:
    """The lease of one run.

    :param holder: the run, with the file of the machine's lock if it holds that.
    """

    def __init__(self, api: Api, holder: Holder, clock: Clock = CLOCK) -> None:
        self._api = api
        self._holder = holder
        self._clock = clock
        self._version = ""
        self._uid = ""

    def take(self) -> Holder | None:
        """Take the lease, and return the ended run from which it was taken over; None if it was free.

        :raises Busy: a running run has it.
        :raises KubeError: the API server does not answer, or refuses.
        """
        for _ in range(TRIES):
            live = self._api.get(API_VERSION, "Lease", NAME, NAMESPACE)
            try:
                if live is None:
                    self._keep(self._api.create(self._wanted({}, 0)))
                    return None
                other = holder_of(live)
                if other is not None and other.run_id != self._holder.run_id:
                    self._must_be_dead(live, other)
                self._put(live, _transitions(live) + 1)
                return other if other and other.run_id != self._holder.run_id else None
            except KubeError as error:
                # Conflict: another run was faster. Missing: the lease was deleted after it was read.
                if error.status != 409 and (live is None or error.status != 404):
                    raise
        raise Busy("Several runs want the lease of the site at the same moment.", None)

    def renew(self) -> None:
        """Hold the lease for another `LEASE_SECONDS`.

        :raises Lost: another run has it, or it was deleted.
        :raises KubeError: the API server does not answer; this run may still have the lease.
        """
        live = self._api.get(API_VERSION, "Lease", NAME, NAMESPACE)
        other = holder_of(live) if live else None
        if live is None or other is None or other.run_id != self._holder.run_id:
            raise Lost(f"The lease was {'taken over: ' + str(other) if other else 'deleted'}.")
        try:
            self._put(live, _transitions(live))
        except KubeError as error:
            if error.status in (404, 409):
                raise Lost("The lease was taken over or deleted while it was renewed.") from error
            raise

    def release(self) -> None:
        """Delete the lease unless another run has changed it.

        :raises KubeError: the API server does not answer; the lease expires by itself.
        """
        preconditions = {"uid": self._uid, "resourceVersion": self._version}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        try:
            path = self._api.path(API_VERSION, "Lease", NAMESPACE, NAME)
            self._api.call("DELETE", path, body=body, what=f"Lease {NAMESPACE}/{NAME}")
        except KubeError as error:
            if error.status not in (404, 409):
                raise

    def _must_be_dead(self, live: Object, other: Holder) -> None:
        """Check that the holder of the lease has ended.

        :raises Busy: it may still run.
        """
        if other.place and (other.boot, other.place) == (self._holder.boot, self._holder.place):
            # This run holds the same lock file of the same boot, so the other run has ended.
            return
        left = LEASE_SECONDS - (self._clock.time() - _renewed(live))
        # A run of this machine without a process here may have ended in a power cut.
        doubtful = other.host == self._holder.host and not other.alive
        if doubtful or not 0 < left <= LEASE_SECONDS + RENEW_SECONDS:
            deadline = self._clock.monotonic() + LEASE_SECONDS
            version = live["metadata"].get("resourceVersion")
            while self._clock.monotonic() < deadline:
                self._clock.sleep(WATCH_SECONDS)
                now = self._api.get(API_VERSION, "Lease", NAME, NAMESPACE)
                if now is None or now["metadata"].get("resourceVersion") != version:
                    other = (holder_of(now) if now else None) or other
                    break
            else:
                return
        raise Busy(f"The site is being changed: {other} (Lease {NAMESPACE}/{NAME}).", other)

    def _put(self, live: Object, transitions: int) -> None:
        path = self._api.path(API_VERSION, "Lease", NAMESPACE, NAME)
        body = self._wanted(live["metadata"], transitions)
        what = f"Lease {NAMESPACE}/{NAME}"
        answer = self._api.call("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=body, what=what)
        self._keep(cast(Object, json.loads(answer)))

    def _keep(self, answer: Mapping[str, Any]) -> None:
        self._version = str(answer["metadata"].get("resourceVersion", ""))
        self._uid = str(answer["metadata"].get("uid", ""))

    def _wanted(self, metadata: Mapping[str, Any], transitions: int) -> Object:
        known = {key: metadata[key] for key in ("resourceVersion", "uid") if key in metadata}
        texts = {f"{PREFIX}{name}": str(getattr(self._holder, name)) for name in TEXTS}
        return {
            "apiVersion": API_VERSION,
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": texts, **known},
            "spec": {
                "holderIdentity": f"{self._holder.run_id}/{self._holder.pid}",
                "leaseDurationSeconds": LEASE_SECONDS,
                "acquireTime": _stamp(self._holder.since),
                "renewTime": _stamp(self._clock.time()),
                "leaseTransitions": transitions,
            },
        }


def holder_of(live: Mapping[str, Any]) -> Holder | None:
    """Return the holder in a lease; None for a free lease."""
    spec = live.get("spec") or {}
    run_id, _, pid = str(spec.get("holderIdentity") or "").rpartition("/")
    if not spec.get("holderIdentity"):
        return None
    said = live["metadata"].get("annotations") or {}
    number = int(pid) if pid.isdigit() else 0
    texts: dict[str, Any] = {name: str(said.get(f"{PREFIX}{name}", "")) for name in TEXTS}
    return Holder(run_id=run_id or pid, pid=number, since=_seconds(spec.get("acquireTime")), leased=True, **texts)


def read(api: Api) -> Holder | None:
    """Return the holder of the lease, running or not; None for a free lease.

    :raises KubeError: the API server does not answer, or refuses.
    """
    live = api.get(API_VERSION, "Lease", NAME, NAMESPACE)
    return holder_of(live) if live else None


def _transitions(live: Mapping[str, Any]) -> int:
    return int((live.get("spec") or {}).get("leaseTransitions") or 0)


def _renewed(live: Mapping[str, Any]) -> float:
    return _seconds((live.get("spec") or {}).get("renewTime"))


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _seconds(stamp: Any) -> float:
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        return 0.0
