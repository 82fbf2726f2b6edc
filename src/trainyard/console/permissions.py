"""The rights of a user, as the API server reports them; a review is repeated after one minute."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..core.waiter import CLOCK, Clock
from ..trainings.names import JOBSET_API, result_name
from .sessions import Session
from .user_api import Client

GOOD_SECONDS = 60.0
FRESH_SECONDS = 5.0
"""Maximum age of a review for watchers, who are reviewed about once a minute."""
LONG_SECONDS = 300.0
"""Maximum age of a review for supporting objects of a run: these rights change rarely, and 20 viewers need them."""
MOST = 10_000
"""Maximum number of cached reviews."""
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JOBSETS = JOBSET_API.partition("/")[0]


class Right(NamedTuple):
    """One verb on one resource.

    :param namespace: empty for all namespaces and for cluster-scoped resources.
    :param name: empty for all objects.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def attributes(self) -> dict[str, str]:
        """Return the attributes for a review; a subresource is written as `pods/log`."""
        resource, _, sub = self.resource.partition("/")
        named = {"verb": self.verb, "group": self.group, "resource": resource, "subresource": sub}
        return {key: value for key, value in {**named, "namespace": self.namespace, "name": self.name}.items() if value}


class Rights:
    """Cached reviews of the rights of sessions."""

    def __init__(self, client: Client, clock: Clock = CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._reviews: dict[tuple[str, Right], tuple[bool, float]] = {}

    async def granted(
        self, session: Session, wanted: Iterable[Right], *, good: float = GOOD_SECONDS
    ) -> frozenset[Right]:
        """Return the rights that the user has.

        :param wanted: rights to review.
        :param good: seconds for which a cached review is valid.
        :raises LoginEnded, KubeError: the API server no longer accepts the token, or does not answer.
        """
        asked = list(dict.fromkeys(wanted))
        answers = await asyncio.gather(*(self._allowed(session, right, good) for right in asked))
        return frozenset(right for right, allowed in zip(asked, answers, strict=True) if allowed)

    async def _allowed(self, session: Session, right: Right, good: float) -> bool:
        now, key = self._clock.monotonic(), (session.identity, right)
        allowed, asked_at = self._reviews.get(key, (False, -good))
        if now - asked_at < good:
            return allowed
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": right.attributes()},
        }
        answer = await self._client.post(session.token, REVIEW, body)
        allowed = answer["status"].get("allowed") is True
        if len(self._reviews) >= MOST:
            self._reviews.clear()
        self._reviews[key] = allowed, now
        return allowed


def of_watching(namespace: str) -> tuple[Right, ...]:
    """Return the rights needed to watch a run: all that its feed shows at once."""
    return (
        Right("watch", "", "pods", namespace),
        Right("get", "", "pods/log", namespace),
        Right("watch", JOBSETS, "jobsets", namespace),
        Right("watch", "batch", "jobs", namespace),
        Right("watch", "", "events", namespace),
    )


def of_tensorboard(namespace: str, claim: str = "") -> Right:
    """Return the right to see the TensorBoard of a claim, or of every claim of a namespace.

    No API server serves this resource. The alternative `services/proxy` would give access to every Service of the
    namespace.
    """
    return Right("get", "trainyard.dev", "tensorboards", namespace, claim)


ACTIONS = ("stop", "continue", "restart", "delete")


def of_action(action: str, namespace: str, run: str, kind: str = "JobSet") -> tuple[Right, ...]:
    """Return the rights that an action needs. They are checked before any change, so that no action stops halfway.

    :param kind: of the object of the run, `JobSet` or `Job`.
    """
    group, resource = (JOBSETS, "jobsets") if kind == "JobSet" else ("batch", "jobs")
    record = result_name(run)
    ends = Right("delete", group, resource, namespace)
    keeps = Right("patch", "", "configmaps", namespace, record)
    return {
        "stop": (ends, keeps),
        "continue": (Right("create", group, resource, namespace), keeps),
        "restart": (Right("create", group, resource, namespace), ends, keeps),
        "delete": (ends, keeps, Right("delete", "", "configmaps", namespace, record)),
    }[action]


def of_list(path: str) -> tuple[Right, Right] | None:
    """Return the rights needed to read a list that a watch keeps; None if the path is no list."""
    found = _API_PATH.fullmatch(path)
    if not found or found["name"]:
        return None
    what = found["group"] or "", found["resource"], found["namespace"] or ""
    return Right("list", *what), Right("watch", *what)


_API_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[0-9a-z]+(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)


def of_reading(path: str) -> frozenset[Right]:
    """Return the alternative rights for a path: any one is sufficient. Paths that every user may read have none.

    The right to list a resource includes reading each of its objects.
    """
    found = _API_PATH.fullmatch(path)
    if not found:
        return frozenset()
    group, space, name = found["group"] or "", found["namespace"] or "", found["name"] or ""
    if found["sub"]:
        resource = f"{found['resource']}/{found['sub']}"
        return frozenset(Right("get", group, resource, where) for where in (space, ""))
    listed = {Right("list", group, found["resource"], where) for where in (space, "")}
    return frozenset(listed | ({Right("get", group, found["resource"], space, name)} if name else set()))
