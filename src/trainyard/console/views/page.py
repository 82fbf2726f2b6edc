"""The definition of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...kube.reads import Reader

Params = Mapping[str, str]
"""Decoded parts of the path and parameters of the query, the first of each name."""
View = dict[str, Any]
"""Plain JSON: the answer of `/api/v1`, and `view` in the template."""


@dataclass(frozen=True)
class Page:
    """One page.

    :param name: of its template, `NAME.html.j2`.
    :param path: pattern of aiohttp; the JSON is at `/api/v1` followed by this path, for `/` at `/api/v1/runs`.
    :param read: reader of its data. It raises KubeError if essential data cannot be read, so that an error is not
        shown as an empty list.
    :param build: function from the reader's result, the parameters and the time to the view. Pure.
    :param query: names of known parameters; others are ignored.
    """

    name: str
    path: str
    read: Callable[[Params], Reader[Any]]
    build: Callable[[Any, Params, datetime], View]
    query: tuple[str, ...] = ()

    @property
    def json_path(self) -> str:
        return "/api/v1" + (f"/{self.name}" if self.path == "/" else self.path)
