"""Drive readers, which request data without knowing the transport, with a user's token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from ..kube.reads import Get, Reader, Unread

Ask = Callable[[Get], Awaitable[Any]]
"""Returns the content of a path, or an `Unread`."""
USAGE = "/apis/metrics.k8s.io/"
T = TypeVar("T")


async def drive(reader: Reader[T], ask: Ask) -> T:
    """Run a reader and return its result; send requests that it yields together concurrently."""
    answer: Any = None
    while True:
        try:
            wanted = reader.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(wanted, Get):
            answer = await ask(wanted)
        else:
            answer = tuple(await asyncio.gather(*map(ask, wanted)))


def of_the_server(unread: Iterable[Unread]) -> list[Unread]:
    """Return the failures that concern the API server itself, without logs (from a node) and usage (metrics-server)."""
    return [each for each in unread if not each.path.endswith("/log") and not each.path.startswith(USAGE)]
