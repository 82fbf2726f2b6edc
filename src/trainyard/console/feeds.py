"""The feeds of all watched runs. Sessions share a feed if the API server grants them the same rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..core.waiter import CLOCK, Clock
from ..kube.api import KubeError
from ..why.snapshot import JOBSET_SYSTEM, LEASES, SYSTEM
from .feed import Feed
from .lists import Lists
from .permissions import FRESH_SECONDS, JOBSETS, LONG_SECONDS, Right, Rights, of_watching
from .sessions import Session, Sessions
from .user_api import Ask, Client

FEEDS = 50
Key = tuple[str, str, frozenset[Right]]
ViewOfRun = Callable[[str, str, Ask], Awaitable[Any]]
"""(namespace, run, ask) -> view of the run."""


def of_view(namespace: str) -> tuple[Right, ...]:
    """Return the optional rights for the view of a run; an object is read only if all sessions of the feed may."""
    here = (
        ("", "configmaps"),
        ("", "persistentvolumeclaims"),
        ("", "resourcequotas"),
        ("apps", "deployments"),
        ("networking.k8s.io", "networkpolicies"),
    )
    everywhere = (
        ("", "pods"),
        ("", "configmaps"),
        ("", "nodes"),
        ("", "persistentvolumes"),
        ("storage.k8s.io", "storageclasses"),
        ("apps", "deployments"),
        ("batch", "jobs"),
        (JOBSETS, "jobsets"),
    )
    return (
        *(Right("list", group, resource, namespace) for group, resource in here),
        *(Right("list", group, resource) for group, resource in everywhere),
        # For a user who may not list the pods of all namespaces.
        *(Right("list", "", "pods", each) for each in (SYSTEM, JOBSET_SYSTEM)),
        *(Right("get", "coordination.k8s.io", "leases", SYSTEM, name) for name in LEASES),
        Right("get", "", "namespaces", "", namespace),
    )


class Feeds:
    """Feeds by run and rights."""

    def __init__(
        self,
        client: Client,
        rights: Rights,
        lists: Lists,
        sessions: Sessions,
        view: ViewOfRun,
        clock: Clock = CLOCK,
    ) -> None:
        self._client, self._rights, self._lists, self._sessions = client, rights, lists, sessions
        self._view, self._clock = view, clock
        self._feeds: dict[Key, Feed] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    async def review(self, session: Session, namespace: str) -> frozenset[Right]:
        """Return the rights of a session for a run, from a fresh review, and for other objects, from a recent one.

        :raises KubeError: status 403, the session may not watch runs in this namespace.
        """
        needed = of_watching(namespace)
        granted = await self._rights.granted(session, needed, good=FRESH_SECONDS)
        if not granted.issuperset(needed):
            raise KubeError(f"You may not watch runs in the namespace {namespace}.", status=403)
        granted |= await self._rights.granted(session, of_view(namespace), good=LONG_SECONDS)
        # A watch from the beginning returns the same objects as a list.
        return granted | {right._replace(verb="list") for right in needed if right.verb == "watch"}

    async def join(self, session: Session, namespace: str, run: str) -> Feed:
        """Return the feed of a run for a session; create it if there is none.

        :raises KubeError: status 403, as `review`; status 503, there are too many feeds.
        """
        granted = await self.review(session, namespace)
        key = (namespace, run, granted)
        if key not in self._feeds:
            if len(self._feeds) >= FEEDS:
                raise KubeError("Too many runs are being watched.", status=503)
            self._feeds[key] = Feed(
                self._client,
                namespace,
                run,
                granted,
                partial(self._view, namespace, run),
                lists=self._lists,
                forget=partial(self._forget, key),
                login_ended=self._sessions.end,
                clock=self._clock,
            )
        return self._feeds[key]

    def _forget(self, key: Key, feed: Feed) -> None:
        """Drop a feed without watchers, unless another feed has replaced it."""
        if self._feeds.get(key) is feed:
            del self._feeds[key]
