"""Memory that lists of the API server hold, bounded for each and for all: who writes objects decides their size."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakSet

from ..kube.api import KubeError

LIST_BYTES, ALL_BYTES = 64 * 1024 * 1024, 96 * 1024 * 1024
"""Of one list, and of all that are read, kept or watched: a pod takes some 6 KB, and the console has 256 MiB."""
FULL = 507
"""Status of the error that says so."""
SHARED = 64
"""Characters of a key up to which the objects of a page are taken to share it."""


class Held:
    """What one list holds.

    :param what: its path, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.bytes = 0
        _ALL.add(self)

    def take(self, more: int) -> None:
        """Count bytes that have come, or have gone.

        :raises KubeError: status `FULL`, there are too many; all are given back, so the list has to be dropped.
        """
        self.bytes += more
        if more <= 0:
            return
        why = ""
        if self.bytes > LIST_BYTES:
            why = f"this list takes more than {LIST_BYTES >> 20} MiB of the console"
        elif sum(each.bytes for each in _ALL) > ALL_BYTES:
            why = f"all lists together take more than {ALL_BYTES >> 20} MiB of the console"
        if why:
            self.bytes = 0
            raise KubeError(
                f"{self._what}: {why}.", status=FULL, remedy="Read it with kubectl, and delete what is large."
            )


_ALL: WeakSet[Held] = WeakSet()


def weight(value: Any) -> int:
    """Bytes that parsed JSON takes in memory. Short keys do not count: the parser has each only once in a page."""
    found, ahead = 0, [value]
    while ahead:
        each = ahead.pop()
        found += sys.getsizeof(each)
        if isinstance(each, dict):
            found += sum(sys.getsizeof(key) for key in each if len(key) > SHARED)
            ahead += each.values()
        elif isinstance(each, list):
            ahead += each
    return found
