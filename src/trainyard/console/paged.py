"""Read a list in pages and reduce its objects while reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..kube.api import KubeError, Object
from .api import LARGER, Client, parsed
from .held import Held, weight
from .slim import slim

LIMITS = (500, 100, 20, 4)
"""Objects per page; smaller pages are tried if an answer exceeds its size limit."""
MOST = 20_000
"""Maximum objects of a list."""


class Paged:
    """A list that is being read.

    :param query: selectors.
    """

    def __init__(self, client: Client, token: str, path: str, query: Sequence[tuple[str, str]]) -> None:
        self._client, self._token, self._path, self._query = client, token, path, dict(query)
        self._items: list[Object] = []
        self._kind: dict[str, str] = {}
        self._limits = list(LIMITS)
        self._more = self._version = ""
        self.ended = False
        self.bytes = 0
        self.held = Held(path)

    @property
    def listed(self) -> Object:
        """The list in the format of the API server."""
        return {**self._kind, "items": self._items, "metadata": {"resourceVersion": self._version}}

    async def read_on(self) -> None:
        """Read one more page.

        :raises LoginEnded, KubeError: as `Client.get`; status `FULL`, see `Held`.
        """
        query = {**self._query, "limit": str(self._limits[0])} | ({"continue": self._more} if self._more else {})
        status, text = await self._client.call(self._token, "GET", self._path, query=query)
        if status == 0 and LARGER in text and len(self._limits) > 1:
            del self._limits[0]
            return
        listed = parsed(status, text, self._path)
        self.bytes += len(text)
        page = [slim(each) for each in listed.get("items") or ()]
        self.held.take(weight(page))
        self._items += page
        if len(self._items) > MOST:
            raise KubeError(f"{self._path}: there are more than {MOST} objects.", status=500)
        meta = listed.get("metadata") or {}
        # All pages show the list at the version of the first page.
        self._version = self._version or str(meta.get("resourceVersion") or "")
        self._kind = {key: str(listed.get(key, "")) for key in ("apiVersion", "kind")}
        self._more = str(meta.get("continue") or "")
        self.ended = not self._more


async def whole(client: Client, token: str, path: str, query: Mapping[str, str]) -> Object:
    """Read all pages of a list.

    :raises LoginEnded, KubeError: as `Client.get`.
    """
    paged = Paged(client, token, path, list(query.items()))
    while not paged.ended:
        await paged.read_on()
    return paged.listed
