"""Lists of objects, read in pages and reduced to shown fields. Users share a large list, kept current by one watch."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from ..core.clock import CLOCK, Clock
from ..kube.api import KubeError, Object
from ..kube.reads import Get, Unread
from .api import Client, LoginEnded
from .paged import Paged
from .reading import Ask
from .rights import Right, Rights, of_list
from .sessions import Session
from .watch import Watch

FRESH_SECONDS = 10.0
"""Maximum age of a review of the right to a shared list; the API server caches tokens for the same time."""
IDLE_SECONDS = 120.0
"""Time without a reader after which a list is dropped."""
LARGE_BYTES = 512 * 1024
"""Minimum size of a kept list; reading a smaller one again costs less than a connection for its watch."""
MOST = 12
"""Maximum number of kept lists."""
Key = tuple[str, tuple[tuple[str, str], ...]]
"""Path and query."""


class _Large:
    """A list kept current by a watch, with the token of one of its readers."""

    def __init__(self, key: Key, listed: Object, leader: Session, now: float) -> None:
        self.watch = Watch(key[0], dict(key[1]), lambda kind, obj: None)
        self.watch.begin(listed)
        self.leader, self.used = leader, now
        self.task: asyncio.Task[None] | None = None


class Lists:
    """The reads of sessions from the API server.

    Sessions share a list if the API server grants each of them `list` and `watch` of its resource in its namespace.
    Only these rights determine the content of a list. They are reviewed again after ten seconds.
    """

    def __init__(self, client: Client, rights: Rights, clock: Clock = CLOCK) -> None:
        self._client, self._rights, self._clock = client, rights, clock
        self._large: dict[Key, _Large] = {}
        self._turns: dict[Key, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._large)

    def asker(self, session: Session, unread: list[Unread] | None = None) -> Ask:
        """Return an `Ask` for a session.

        :param unread: receives the failures.
        """

        async def ask(wanted: Get) -> Any:
            try:
                return await self.get(session, wanted)
            except KubeError as error:
                missing = Unread(wanted.path, error.status, error.message.rstrip("."))
                if unread is not None:
                    unread.append(missing)
                return missing

        return ask

    async def get(self, session: Session, wanted: Get) -> Any:
        """Return the content of a path; do not modify it.

        :raises LoginEnded, KubeError: as `Client.get`.
        """
        rights = of_list(wanted.path)
        if wanted.text or wanted.accept or rights is None:
            return await self._client.get(
                session.token, wanted.path, wanted.query, accept=wanted.accept, text=wanted.text
            )
        key = (wanted.path, tuple(sorted(wanted.query.items())))
        kept = await self._shared(session, key, rights)
        return kept or await self._client.cached((session.token, key), partial(self._read, session, key, rights))

    async def _shared(self, session: Session, key: Key, rights: tuple[Right, ...]) -> Object | None:
        """Return a kept list if the session may read it, else None."""
        large = self._large.get(key)
        if large is None:
            return None
        granted = await self._rights.granted(session, rights, good=FRESH_SECONDS)
        if not granted.issuperset(rights) or self._large.get(key) is not large:
            return None
        large.used = self._clock.monotonic()
        return large.watch.as_list()

    async def _read(self, session: Session, key: Key, rights: tuple[Right, ...]) -> tuple[Object, int]:
        """Read a list; return it with its size in bytes, and start keeping a large one."""
        paged = Paged(self._client, session.token, *key)
        await paged.read_on()
        if paged.ended and paged.bytes < LARGE_BYTES:
            return paged.listed, paged.bytes
        # One of several concurrent callers reads it, and the others wait.
        try:
            async with self._turns.setdefault(key, asyncio.Lock()):
                if kept := await self._shared(session, key, rights):
                    return kept, 0
                while not paged.ended:
                    await paged.read_on()
                if (await self._rights.granted(session, rights, good=FRESH_SECONDS)).issuperset(rights):
                    self._keep(key, paged, session)
        finally:
            self._turns.pop(key, None)
        return paged.listed, paged.bytes

    def _keep(self, key: Key, paged: Paged, session: Session) -> None:
        """Keep a list if there is room for it."""
        if session.ended or len(self._large) >= MOST:
            return
        # The watch takes over the objects, so release their bytes here.
        paged.held.take(-paged.held.bytes)
        try:
            large = _Large(key, paged.listed, session, self._clock.monotonic())
        except KubeError:
            return
        self._large[key] = large
        large.task = asyncio.create_task(self._follow(key, large))
        session.at_end.append(large.task.cancel)

    async def _follow(self, key: Key, large: _Large) -> None:
        """Keep a list until no reader is left or its watch fails; the next reader then reads it again."""
        try:
            while self._clock.monotonic() - large.used < IDLE_SECONDS and large.watch.known:
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_SECONDS):
                        await large.watch.follow(self._client, large.leader.token, lambda: None)
        except (KubeError, LoginEnded):
            pass
        finally:
            large.watch.release()
            if self._large.get(key) is large:
                del self._large[key]
            if large.task and large.task.cancel in large.leader.at_end:
                large.leader.at_end.remove(large.task.cancel)
