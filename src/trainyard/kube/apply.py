"""Apply manifests, and delete objects that are no longer wanted.

A server-side dry run determines the changes. The waits afterwards are bounded.

Parts: the plan and its waits; an `Api` that retries; a Secret built from files; the deletion. The `Api` retries while
the server is briefly unavailable, for work that must not stop halfway. The host that runs the module reads the files of
the Secret, so that no task contains their text. The deletion covers objects that have a given label.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from ..core.waiter import CLOCK, Clock, wait_until
from .api import Api, KubeError, Object, describe

PARALLEL_CALLS = 8
RETRY_SECONDS = 1.0
DIFF_BYTES = 20_000
"""A diff shows larger objects only as a hash; custom resource definitions are ten times this size."""

FIRST = ("Namespace", "CustomResourceDefinition", "ServiceAccount")
LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
"""Webhooks are applied last: one that is registered before its server runs refuses all later objects."""

API_VERSIONS = {
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
}
SERVER_FIELDS = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


@dataclass(frozen=True)
class Wait:
    """A condition that must hold after the objects are applied.

    :param name: None means all objects of the kind in the namespace (or cluster), and at least one.
    :param condition: `Exists`, `RolledOut` (Deployment, DaemonSet, StatefulSet), `Serving` (a Service with a ready
        endpoint) or the type of a status condition that must be True, such as `Available`, `Ready` or `Established`.
    """

    kind: str
    condition: str
    name: str | None = None
    namespace: str | None = None
    api_version: str | None = None

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name or '*'} to be {self.condition}"


def plan_objects(
    api: Api,
    objects: Sequence[Mapping[str, Any]],
    *,
    timeout: float = 120.0,
    hidden: Collection[str] = ("Secret",),
    guard: Callable[[Sequence[Object]], None] = lambda live: None,
) -> Plan:
    """Compare objects with the cluster by server-side dry run; the steps apply only those that differ.

    A new object cannot be validated in advance if this plan creates its kind or namespace. Its step then notes that.

    :param objects: complete manifests. Namespaces and definitions are applied first; otherwise the order is kept.
    :param timeout: seconds for which one object's apply is retried while the server or a webhook starts.
    :param hidden: kinds that a diff shows only as a hash.
    :param guard: receives the existing objects before anything is changed, and may refuse them.
    :raises KubeError: the server refuses an object in the dry run; nothing was changed.
    """
    ordered = sorted((_clean(obj) for obj in objects), key=_rank)
    with ThreadPoolExecutor(PARALLEL_CALLS) as pool:
        compared = list(pool.map(partial(_compare, api, timeout=timeout), ordered))
    guard([live for live, _, _ in compared if live is not None])
    steps: list[Step] = []
    before: Object = {}
    after: Object = {}
    definitions: list[Wait] = []
    for obj, (live, wanted, untried) in zip(ordered, compared, strict=True):
        if live == wanted:
            continue
        if obj["kind"] == "CustomResourceDefinition":
            definitions.append(Wait(obj["kind"], "Established", name=obj["metadata"]["name"]))
        elif definitions:
            steps.append(Step("Wait until the definitions are served", partial(_wait, api, definitions, timeout)))
            definitions = []
        verb = "Create" if live is None else "Update"
        note = f" (not validated: {untried})" if untried else ""
        steps.append(Step(f"{verb} {describe(obj)}{note}", partial(_apply, api, obj, timeout)))
        before[describe(obj)] = _shown(live, hidden)
        after[describe(obj)] = _shown(wanted, hidden)
    return Plan(steps, before, after)


def unreachable_plan(objects: Sequence[Mapping[str, Any]], why: str) -> Plan:
    """Return the check-mode plan for an unreachable cluster: all objects might be applied, with the reason."""
    steps = [Step(f"Not planned: {why}", lambda: None)]
    steps += [Step(f"Apply {describe(obj)}", lambda: None) for obj in objects]
    return Plan(steps, {}, {describe(obj): "not planned" for obj in objects}, unread=why)


def wait_for(api: Api, waits: Sequence[Wait], *, timeout: float) -> None:
    """Wait until all conditions hold.

    :param timeout: limit in seconds for all of them together.
    :raises WaitError: the first condition that did not hold, with its last state.
    """
    deadline = time.monotonic() + timeout
    for wait in waits:
        wait_until(
            partial(_unmet, api, wait),
            lambda unmet: not unmet,
            what=str(wait),
            timeout=max(deadline - time.monotonic(), 0.0),
        )


def is_met(obj: Mapping[str, Any], condition: str) -> bool:
    """Return whether an object, as returned by the server, meets a condition (see `Wait`)."""
    status = obj.get("status") or {}
    if condition == "Exists":
        return True
    if status.get("observedGeneration", obj["metadata"].get("generation")) != obj["metadata"].get("generation"):
        return False
    if condition == "RolledOut":
        return _rolled_out(obj.get("spec") or {}, status)
    return any(each["type"] == condition and each["status"] == "True" for each in status.get("conditions") or [])


def retry(call: Callable[[], Any], *, timeout: float, clock: Clock = CLOCK) -> Any:
    """Call until it succeeds, retrying only transient errors.

    :param timeout: limit in seconds; after it, the last error is raised.
    """
    deadline = clock.monotonic() + timeout
    while True:
        try:
            return call()
        except KubeError as error:
            if not error.transient or clock.monotonic() + RETRY_SECONDS > deadline:
                raise
        clock.sleep(RETRY_SECONDS)


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _rolled_out(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    if "desiredNumberScheduled" in status:
        wanted = status["desiredNumberScheduled"]
        return bool(wanted) and status.get("updatedNumberScheduled", 0) == status.get("numberAvailable", 0) == wanted
    wanted = spec.get("replicas", 1)
    return all(status.get(key, 0) == wanted for key in ("updatedReplicas", "availableReplicas", "replicas"))


def _unmet(api: Api, wait: Wait) -> str:
    """Return the observed state if the condition does not hold, otherwise an empty text."""
    try:
        if wait.condition == "Serving":
            slices = api.list(
                API_VERSIONS["EndpointSlice"],
                "EndpointSlice",
                wait.namespace,
                labels=f"kubernetes.io/service-name={wait.name}",
            )
            points = [point for each in slices for point in each.get("endpoints") or []]
            ready = any((point.get("conditions") or {}).get("ready") for point in points)
            return "" if ready else f"{len(points)} endpoints, none ready"
        version = wait.api_version or API_VERSIONS.get(wait.kind, "v1")
        if wait.name:
            one = api.get(version, wait.kind, wait.name, wait.namespace)
            found = [one] if one else []
        else:
            found = api.list(version, wait.kind, wait.namespace)
    except KubeError as error:
        if error.transient:
            return str(error)
        raise
    if not found:
        return "there is none"
    unmet = [obj for obj in found if not is_met(obj, wait.condition)]
    return "; ".join(f"{describe(obj)}: {json.dumps(_state(obj))}" for obj in unmet)


def _state(obj: Mapping[str, Any]) -> Object:
    status = obj.get("status") or {}
    numbers = {key: value for key, value in status.items() if isinstance(value, int)}
    bad = [each.get("message") or each["type"] for each in status.get("conditions") or [] if each["status"] != "True"]
    return {**numbers, "not_true": bad} if bad else numbers


def _rank(obj: Mapping[str, Any]) -> int:
    kind = obj["kind"]
    if kind in FIRST:
        return FIRST.index(kind)
    return len(FIRST) + (kind in LAST)


def _clean(obj: Mapping[str, Any]) -> Object:
    """Return a manifest without fields that only the server sets; generated ones have `creationTimestamp: null`."""
    if not obj.get("apiVersion") or not obj.get("kind") or not (obj.get("metadata") or {}).get("name"):
        raise TrainyardError(f"{describe(obj)} is not a manifest: it needs apiVersion, kind and metadata.name.")
    clean = copy.deepcopy(dict(obj))
    clean.pop("status", None)
    for field in SERVER_FIELDS:
        clean["metadata"].pop(field, None)
    return clean


def _compare(api: Api, obj: Object, *, timeout: float) -> tuple[Object | None, Object, str]:
    """Return the live object, the desired one, and why the dry run was impossible (usually empty)."""
    meta = obj["metadata"]
    live = api.get(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace", "default"))
    if live is None:
        return None, obj, _untried(api, obj)
    wanted = retry(partial(api.apply, obj, dry_run=True), timeout=timeout)
    return _clean({**obj, **live}), _clean({**obj, **wanted}), ""


def _untried(api: Api, obj: Object) -> str:
    """Return why the server cannot dry-run a new object yet; empty if the dry run succeeded.

    :raises KubeError: the server refuses the object.
    """
    try:
        api.apply(obj, dry_run=True)
    except KubeError as error:
        # The kind or namespace does not exist yet (404), or a webhook that this plan may create is not running.
        if error.status != 404 and not error.transient:
            raise
        return error.message.rstrip(".")
    return ""


def _apply(api: Api, obj: Object, timeout: float) -> None:
    retry(partial(api.apply, obj), timeout=timeout)


def _wait(api: Api, waits: Sequence[Wait], timeout: float) -> None:
    wait_for(api, waits, timeout=timeout)


def _shown(obj: Object | None, hidden: Collection[str]) -> Any:
    """Return the form of an object for a diff, without secret data and without large schemas."""
    if obj is None:
        return "absent"
    if obj["kind"] in hidden or len(json.dumps(obj)) > DIFF_BYTES:
        return {"sha256": content_hash(obj)}
    return obj


OUTAGE_SECONDS = 90.0
"""A restarting control plane answers again within a minute."""


class PatientApi(Api):
    """A wrapper of an `Api` that retries calls on transient errors, each for at most `OUTAGE_SECONDS`.

    If the answer to a creation was lost, the retry gets status 409.
    """

    def __init__(self, api: Api, clock: Clock = CLOCK) -> None:
        super().__init__(api._transport, api._stream)
        self._plain, self._clock = api, clock

    def call(self, method: str, path: str, **named: Any) -> str:
        once = partial(super().call, method, path, **named)
        return str(retry(once, timeout=OUTAGE_SECONDS, clock=self._clock))

    def pieces(self, path: str, query: Mapping[str, Any], *, what: str = "") -> Generator[bytes, None, None]:
        """Stream without retries: an unreadable log may be the fault of its node, which may never answer again."""
        return self._plain.pieces(path, query, what=what)


def secret_of_files(
    *, name: str, namespace: str, type: str, files: Mapping[str, str], labels: Mapping[str, str]
) -> Object:
    """Return a Secret with the contents of files.

    :param type: type of the Secret, such as `kubernetes.io/tls`.
    :param files: key in the Secret -> path.
    :raises TrainyardError: a file cannot be read; the message contains its path but none of its content.
    """
    data = {}
    for key, path in files.items():
        try:
            with open(path, "rb") as stream:
                data[key] = base64.b64encode(stream.read()).decode()
        except OSError as error:
            why = f"{path}, for the Secret {namespace}/{name}, cannot be read: {error.strerror}."
            raise TrainyardError(why) from error
    meta = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type, "data": data}


WRITE_SECONDS = 60.0

Place = tuple[str, str, str]
"""Kind, namespace (empty for cluster-scoped objects) and name."""


def place(obj: Mapping[str, Any]) -> Place:
    meta = obj["metadata"]
    return str(obj["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def plan_prune(api: Api, kinds: Sequence[Mapping[str, str]], keep: Iterable[Mapping[str, Any]]) -> Plan:
    """Plan to delete the objects that label selectors match, except those in `keep`.

    :param kinds: each has `api_version`, `kind`, `selector`, and optionally `namespace`; without it, all namespaces
        are searched. An empty selector is an error, because it would match everything.
    :raises KubeError: a kind cannot be listed; nothing was deleted.
    """
    if not all(each["selector"].strip() for each in kinds):
        raise ValueError("a selector is empty, which would delete everything")
    kept = {place(obj) for obj in keep}
    found = [
        obj
        for each in kinds
        for obj in api.list(each["api_version"], each["kind"], each.get("namespace") or None, labels=each["selector"])
        # Objects that are already being deleted need no step.
        if not obj["metadata"].get("deletionTimestamp")
    ]
    gone = [obj for obj in found if place(obj) not in kept]
    steps = [Step(f"Delete {describe(obj)}", partial(_delete, api, obj)) for obj in gone]
    return Plan(steps, [describe(obj) for obj in found], [describe(obj) for obj in found if place(obj) in kept])


def _delete(api: Api, obj: Object) -> None:
    """Delete this object by its UID, so that a newer one of the same name stays (status 409)."""
    meta = obj["metadata"]
    retry(
        partial(
            api.delete, obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"), uid=meta.get("uid", "")
        ),
        timeout=WRITE_SECONDS,
    )
