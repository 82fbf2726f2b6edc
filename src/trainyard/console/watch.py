"""A collection of the API server, listed once and then kept up to date by a watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from ..kube.api import KubeError, Object
from ..kube.pod_log import Lines
from .api import Client
from .held import FULL as FULL
from .held import Held, weight
from .paged import whole
from .slim import slim

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
