"""An answer of an API server, or of what answers in its place: bounded in size, and of the form that was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import TrainyardError
from .pod_log import says_no_log

MOST_BYTES = 2**27
"""Bytes of an answer: 5,000 pods of 8 KB are a third of that."""


class KubeError(TrainyardError):
    """The API server refused a call or did not answer.

    :param status: HTTP status; 0 when no answer came.
    :param final: no answer will ever come: the server's certificate is refused, or the kubeconfig is damaged.
    """

    def __init__(self, message: str, *, status: int, remedy: str = "", final: bool = False) -> None:
        super().__init__(message, remedy=remedy, status=status)
        self.status = status
        self.final = final

    @property
    def no_answer(self) -> bool:
        """Is there no server yet, or just now? Check mode plans for one that will be there."""
        return self.status == 0 and not self.final

    @property
    def no_log(self) -> bool:
        """Does a container have no log yet? Any other status 400 of a log is an error."""
        return says_no_log(self.status, self.message)

    @property
    def transient(self) -> bool:
        """May the same call succeed a moment later? No answer, overload, a webhook or an etcd that starts (status 500),
        or a server that has not read its own roles yet (403)."""
        busy = self.status in (429, 502, 503, 504)
        starts = self.status == 500 and any(word in self.message for word in ("webhook", "etcdserver: ", "rpc error: "))
        roles_unread = self.status == 403 and "RBAC: " in self.message and "not found" in self.message
        return self.no_answer or busy or starts or roles_unread


def bounded(read: Callable[[int], bytes]) -> str:
    """An answer as text.

    :param read: returns at most as many bytes as it is asked for.
    :raises KubeError: the answer has more than `MOST_BYTES`.
    """
    data = read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise KubeError(
            f"The API server's answer has more than {MOST_BYTES >> 20} MiB.",
            status=0,
            remedy="Check that the kubeconfig names the API server, and not another program.",
            final=True,
        )
    return data.decode(errors="replace")


def document(text: str, what: str) -> dict[str, Any]:
    """The object that an answer holds.

    :param what: the object or action, for the error message.
    :raises KubeError: the answer is no object of JSON: a proxy's page, for one.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KubeError(
            f"{what}: the answer is no object of JSON.",
            status=0,
            remedy="Check that the kubeconfig names the API server, and no proxy answers in its place.",
            final=True,
        )
    return found


def member(found: Mapping[str, Any], key: str, what: str) -> list[dict[str, Any]]:
    """The list of objects under a key of an answer.

    :raises KubeError: there is none.
    """
    each = found.get(key)
    if not isinstance(each, list) or not all(isinstance(one, dict) for one in each):
        raise KubeError(f"{what}: the answer has no list {key}.", status=0, final=True)
    return each
