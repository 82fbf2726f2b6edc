"""Guards against an operator, each with a function that switches it off and returns the function to switch it on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from mishaps import until
from red_attempts import POLICY, RIGHTS, Attempt
from stand import Stand
from timed import BenchError

from trainyard.kube.api import Api, KubeError
from trainyard.trainings.stop import Stop

GUARD_SECONDS = 60.0
"""Time for the API server to notice that a guard is off, or on again."""
ADMISSION = "admissionregistration.k8s.io/v1"
BINDING = "ValidatingAdmissionPolicyBinding"
BINDINGS = ("trainyard-console-pods", "trainyard-reserved-labels", "trainyard-console-records")
RBAC = "rbac.authorization.k8s.io/v1"
ALL_RIGHTS = "red-all-rights"
SERVERS = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")
"""Fields of `metadata` that only the API server writes."""


def applied(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object in a form that can be applied again after its deletion."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in SERVERS}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def policies_off(stand: Stand) -> Callable[[], None]:
    """Delete the bindings of the console's admission policies.

    :raises BenchError: one is missing, so nothing is tested.
    """
    found = [stand.api.get(ADMISSION, BINDING, name) for name in BINDINGS]
    kept = [applied({"apiVersion": ADMISSION, "kind": BINDING, **each}) for each in found if each]
    if len(kept) != len(BINDINGS):
        raise BenchError(f"Only {len(kept)} of {', '.join(BINDINGS)} exist.")
    for name in BINDINGS:
        stand.api.delete(ADMISSION, BINDING, name)

    def on() -> None:
        for each in kept:
            stand.api.apply(each)

    return on


def rights_off(stand: Stand) -> Callable[[], None]:
    """Give the operator all rights."""
    stand.api.apply({
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ALL_RIGHTS},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "ServiceAccount", "name": "user-alice", "namespace": "trainyard-console"}],
    })  # fmt: skip
    return lambda: stand.api.delete(RBAC, "ClusterRoleBinding", ALL_RIGHTS) and None


OFF: dict[str, Callable[[Stand], Callable[[], None]]] = {POLICY: policies_off, RIGHTS: rights_off}


@contextmanager
def open_volumes() -> Iterator[None]:
    """Remove the check of volumes' claims from a deletion: a volume belongs to a run by the beginning of its name."""

    def begins(stop: Any, volume: dict[str, Any]) -> bool:
        return str(volume["metadata"]["name"]).startswith(f"{stop.namespace}-")

    with mock.patch.object(Stop, "_claims_it", begins):
        yield


def ask(api: Api, one: Attempt, dry: bool) -> int:
    """Return the status of an attempt; 0 if it was accepted.

    :raises BenchError: it is refused for another reason than its guard.
    """
    query = {"dryRun": "All"} if dry and one.method != "GET" else {}
    try:
        api.call(one.method, one.path, query=query, body=one.body, content_type=one.content, what=one.name)
    except KubeError as error:
        if error.status == 403 and not re.search(one.said, error.message):
            raise BenchError(f"{one.name} is refused by another guard: {error.message}") from error
        return error.status
    return 0


def refused(api: Api, tries: Sequence[Attempt]) -> list[str]:
    """Send all requests for real; return those that their guard does not refuse, a sentence each."""
    wrong = []
    for one in tries:
        try:
            status = ask(api, one, dry=False)
        except BenchError as error:
            wrong.append(str(error))
            continue
        wrong += [] if status == 403 else [f"{one.name} is answered with {status or 'success'}"]
    return wrong


def accepted(api: Api, tries: Sequence[Attempt]) -> list[str]:
    """Send the same without their guard, as dry runs; return those that fail anyway, a sentence each."""
    wrong = []
    for one in tries:
        status = ask(api, one, dry=True)
        # A proxy leads to a server that may not exist: 404 or 503 comes from behind the guard.
        works = status not in (401, 403) if "/proxy/" in one.path else status == 0
        wrong += [] if works else [f"{one.name} is answered with {status} without its guard, too"]
    return wrong


def without(stand: Stand, guard: str, api: Api, tries: Sequence[Attempt]) -> list[str]:
    """Switch a guard off, check that the attempts work, and switch it on again."""
    mine = [one for one in tries if one.guard == guard]
    on = OFF[guard](stand)
    probe = mine[0]
    try:
        until(f"an end of {guard}", lambda: ask(api, probe, dry=True) != 403, GUARD_SECONDS)
        # Each server caches rules separately, and each rule on its own.
        time.sleep(3)
        return accepted(api, mine)
    finally:
        on()
        until(f"{guard} again", lambda: ask(api, probe, dry=True) == 403, GUARD_SECONDS)
