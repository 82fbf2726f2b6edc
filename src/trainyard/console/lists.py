"""Lists of objects, read in pages, reduced to shown fields, and kept current by watches.

Parts: a watch; the lists of all users. A watch lists a collection of the API server once, and then keeps it up to date.
Users share a large list, which one watch keeps current.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ..core.waiter import CLOCK, Clock
from ..kube.api import KubeError, Object
from ..kube.pod_log import Lines
from ..kube.reads import Get, Unread
from .paged import Paged, slim, whole
from .permissions import Right, Rights, of_list
from .sessions import Session
from .shares import Held, weight
from .user_api import Ask, Client, LoginEnded

WATCH_SECONDS = 240
"""Time after which the server ends a watch, which is then opened again."""
OBJECT_BYTES = 4 * 1024 * 1024
"""Maximum size of an object; the API server stores none larger than 1.5 MiB."""
_YIELD = 200


class Watch:
    """The objects of a collection.

    :param path: of the collection.
    :param query: its selectors.
    :param kept: whether to keep the objects, or only to report changes.
    :param changed: called with the type of a change (`ADDED`, `MODIFIED`, `DELETED`, or `LISTED` once for a whole list)
        and the object.
    """

    def __init__(
        self, path: str, query: Mapping[str, str], changed: Callable[[str, Object], None], *, kept: bool = True
    ) -> None:
        self.path = path
        self.query = dict(query)
        self.synced = False
        self._changed = changed
        self._kept = kept
        self._objects: dict[tuple[str, str], Object] = {}
        self._weights: dict[tuple[str, str], int] = {}
        self._held = Held(path)
        self._kind: dict[str, str] = {}
        self._version = ""

    @property
    def items(self) -> list[Object]:
        return list(self._objects.values())

    @property
    def known(self) -> bool:
        """Whether a list was read from which a watch can continue."""
        return bool(self._version)

    def as_list(self) -> Object:
        """Return the objects in the format of a list of the API server."""
        return {**self._kind, "items": self.items, "metadata": {"resourceVersion": self._version}}

    async def follow(self, client: Client, token: str, heard: Callable[[], None]) -> None:
        """Receive changes until the connection ends, which is no error; the next call continues from there.

        :param heard: called whenever data arrives.
        :raises LoginEnded, KubeError: the server refuses or does not answer; status `FULL`, see `Held`.
        """
        if not self._version:
            if self._kept:
                self.begin(await whole(client, token, self.path, self.query))
            else:
                self.begin(await client.get(token, self.path, {**self.query, "limit": "1"}))
            heard()
        query = {**self.query, "watch": "1", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(WATCH_SECONDS)
        lines, count = Lines(OBJECT_BYTES, stamped=False, last=True), 0
        try:
            async with client.stream(token, self.path, query) as chunks:
                heard()
                async for chunk in chunks:
                    heard()
                    for line in lines.feed(chunk):
                        self._event(line.text, line.cut)
                        count += 1
                        if count % _YIELD == 0:
                            await asyncio.sleep(0)
        except KubeError as error:
            if error.status != 410:
                raise
            self._version = ""

    def begin(self, listed: Any) -> None:
        """Start from a list whose objects are already reduced.

        :raises KubeError: status `FULL`, see `Held`.
        """
        found = listed.get("items") or () if self._kept else ()
        self._objects = {_key(each): each for each in found}
        self._weights = {key: weight(each) for key, each in self._objects.items()}
        self._take(sum(self._weights.values()) - self._held.bytes)
        self._kind = {key: str(listed.get(key, "")) for key in ("apiVersion", "kind")}
        self._version = str((listed.get("metadata") or {}).get("resourceVersion") or "0")
        self.synced = True
        self._changed("LISTED", {})

    def release(self) -> None:
        """Drop all objects; the next call of `follow` lists them again."""
        self._take(-self._held.bytes)
        self._objects, self._weights = {}, {}
        self._version, self.synced = "", False

    def _take(self, more: int) -> None:
        try:
            self._held.take(more)
        except KubeError:
            self.release()
            raise

    def _event(self, line: bytes, cut: bool) -> None:
        """
        :raises KubeError: status 410, the list must be read again; status `FULL`, see `Held`.
        """
        if not line:
            return
        if cut:
            raise KubeError("An object is too large to be watched.", status=410)
        event = json.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise KubeError(str(obj.get("message")), status=410 if obj.get("code") == 410 else 500)
        self._version = obj["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        if kind == "DELETED":
            self._objects.pop(_key(obj), None)
            self._take(-self._weights.pop(_key(obj), 0))
        elif self._kept:
            key, kept = _key(obj), slim(obj)
            before, size = self._weights.get(key, 0), weight(kept)
            self._objects[key], self._weights[key] = kept, size
            self._take(size - before)
        self._changed(kind, obj)


def _key(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"].get("namespace", "")), obj["metadata"]["name"]


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
