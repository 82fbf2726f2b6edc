"""Readers, which ask for answers and know no transport, driven with a user's token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from ..kube.reads import Get, Reader, Unread

Ask = Callable[[Get], Awaitable[Any]]
"""What there is at a path, or an `Unread`."""
USAGE = "/apis/metrics.k8s.io/"
T = TypeVar("T")


async def drive(reader: Reader[T], ask: Ask) -> T:
    """What a reader returns; of several questions that it has at once, all are asked at once."""
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
    """Those that the API server answers itself: logs come from a node, which may be away, and usage from another
    server."""
    return [each for each in unread if not each.path.endswith("/log") and not each.path.startswith(USAGE)]
