"""What a page is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...kube.reads import Reader

Params = Mapping[str, str]
"""Parts of the path and parameters of the query, of each name the first, all without their quoting."""
View = dict[str, Any]
"""What `/api/v1` answers and the template gets as `view`: plain JSON."""


@dataclass(frozen=True)
class Page:
    """One page.

    :param name: of its template, `NAME.html.j2`.
    :param path: as aiohttp writes it; its JSON is at `/api/v1` and this path, that of `/` at `/api/v1/runs`.
    :param read: the reader of what it shows. It raises KubeError where that without which there is no page is not to
        be had, so that nobody takes an error for an empty list.
    :param query: names of parameters that it knows; others are not looked at.
    :param build: what the reader returned, the parameters and the time -> the view. Pure.
    """

    name: str
    path: str
    read: Callable[[Params], Reader[Any]]
    build: Callable[[Any, Params, datetime], View]
    query: tuple[str, ...] = ()

    @property
    def json_path(self) -> str:
        return "/api/v1" + (f"/{self.name}" if self.path == "/" else self.path)
