"""Page about the console itself: what runs here, who is logged in, and what that user may do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...kube.reads import Get, Reader, Unread
from .page import Page, Params


def read(params: Params) -> Reader[object]:
    return (yield Get("/version"))


def build(version: object, params: Params, now: datetime) -> dict[str, Any]:
    """The view: the API server's version. Who asks, and the versions of the lock, the server knows itself."""
    known = version if isinstance(version, dict) else {}
    why = version.reason if isinstance(version, Unread) else ""
    return {"api_server": str(known.get("gitVersion", "")), "platform": str(known.get("platform", "")), "unread": why}


PAGE = Page("about", "/about", read, build)
