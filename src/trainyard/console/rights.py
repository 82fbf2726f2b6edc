"""What a user may do, by the API server's own word, which is asked again after a minute."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..core.clock import CLOCK, Clock
from ..trainings.names import JOBSET_API, result_name
from .api import Client
from .sessions import Session

GOOD_SECONDS = 60.0
FRESH_SECONDS = 5.0
"""For somebody who watches, and is looked at about once a minute."""
LONG_SECONDS = 300.0
"""For what stands round a run: it changes seldom, and 20 viewers ask for it."""
MOST = 10_000
"""Reviews that are remembered."""
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JOBSETS = JOBSET_API.partition("/")[0]


class Right(NamedTuple):
    """One verb on one kind of thing.

    :param namespace: empty for all of them, and for what is in none.
    :param name: empty for every object.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def attributes(self) -> dict[str, str]:
        """As a review asks for it; a resource below another is `pods/log`."""
        resource, _, sub = self.resource.partition("/")
        named = {"verb": self.verb, "group": self.group, "resource": resource, "subresource": sub}
        return {key: value for key, value in {**named, "namespace": self.namespace, "name": self.name}.items() if value}


class Rights:
    """Reviews of what sessions may do."""

    def __init__(self, client: Client, clock: Clock = CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._reviews: dict[tuple[str, Right], tuple[bool, float]] = {}

    async def granted(
        self, session: Session, wanted: Iterable[Right], *, good: float = GOOD_SECONDS
    ) -> frozenset[Right]:
        """Those of the rights that the user has.

        :param good: seconds for which a review is believed.
        :raises LoginEnded, KubeError: the API server does not know the user any more, or does not answer.
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
    """What somebody needs who watches a run: all that its feed shows at once."""
    return (
        Right("watch", "", "pods", namespace),
        Right("get", "", "pods/log", namespace),
        Right("watch", JOBSETS, "jobsets", namespace),
        Right("watch", "batch", "jobs", namespace),
        Right("watch", "", "events", namespace),
    )


def of_tensorboard(namespace: str, claim: str = "") -> Right:
    """The right to see the TensorBoard of a claim, or of every claim of a namespace.

    No server serves this kind. `services/proxy` would lead through the API server to every Service of the namespace.
    """
    return Right("get", "trainyard.dev", "tensorboards", namespace, claim)


ACTIONS = ("stop", "continue", "restart", "delete")


def of_action(action: str, namespace: str, run: str, kind: str = "JobSet") -> tuple[Right, ...]:
    """What an action needs; asked before anything is changed, so that none ends half done.

    :param kind: `JobSet` or `Job`, which runs it.
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
    """What a session needs to read a list that a watch keeps; None for a path of anything else."""
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
    """Rights of which each is enough to read a path; none for paths that everybody may read.

    Who may list a kind may see each object of it.
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
