"""Responses of an API server, or of a program in its place: bounded in size and checked for the expected form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import TrainyardError
from .pod_log import says_no_log

MOST_BYTES = 2**27
"""Largest response in bytes: 5,000 pods of 8 KB are a third of that."""


class KubeError(TrainyardError):
    """The API server refused a call or did not answer.

    :param status: HTTP status; 0 if no answer came.
    :param final: retries cannot succeed: the server's certificate is refused, or the kubeconfig is damaged.
    """

    def __init__(self, message: str, *, status: int, remedy: str = "", final: bool = False) -> None:
        super().__init__(message, remedy=remedy, status=status)
        self.status = status
        self.final = final

    @property
    def no_answer(self) -> bool:
        """Return whether the server is absent, maybe temporarily. Check mode then plans for a future server."""
        return self.status == 0 and not self.final

    @property
    def no_log(self) -> bool:
        """Return whether a container has no log yet. Any other status 400 of a log is an error."""
        return says_no_log(self.status, self.message)

    @property
    def transient(self) -> bool:
        """Return whether a retry may succeed.

        That is so without an answer, on overload, while a webhook or etcd starts (status 500), and while the server has
        not read its own roles yet (403).
        """
        busy = self.status in (429, 502, 503, 504)
        starts = self.status == 500 and any(word in self.message for word in ("webhook", "etcdserver: ", "rpc error: "))
        roles_unread = self.status == 403 and "RBAC: " in self.message and "not found" in self.message
        return self.no_answer or busy or starts or roles_unread


def bounded(read: Callable[[int], bytes]) -> str:
    """Return a response as text.

    :param read: returns at most the given number of bytes.
    :raises KubeError: the response has more than `MOST_BYTES`.
    """
    data = read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise KubeError(
            f"The API server's answer has more than {MOST_BYTES >> 20} MiB.",
            status=0,
            remedy="Check that the address in the kubeconfig is the API server's, not that of another program.",
            final=True,
        )
    return data.decode(errors="replace")


def document(text: str, what: str) -> dict[str, Any]:
    """Parse a response that contains one JSON object.

    :param what: the object or action, for the error message.
    :raises KubeError: the response is not a JSON object, but for example a proxy's page.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KubeError(
            f"{what}: the answer is not a JSON object.",
            status=0,
            remedy="Check that the kubeconfig contains the API server's address, and that no proxy answers instead.",
            final=True,
        )
    return found


def member(found: Mapping[str, Any], key: str, what: str) -> list[dict[str, Any]]:
    """Return the list of objects under a key of a response.

    :raises KubeError: the response has no such list.
    """
    each = found.get(key)
    if not isinstance(each, list) or not all(isinstance(one, dict) for one in each):
        raise KubeError(f"{what}: the answer has no list {key}.", status=0, final=True)
    return each
