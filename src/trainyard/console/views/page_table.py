"""All pages of the console, in the order in which the server matches their paths.

The first part is the page about the console itself: versions, the logged-in user, and that user's rights.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...kube.reads import Get, Reader, Unread
from . import cluster_page, nodes_page, receipts, run_page, runs_page
from .page import Page, Params


def read(params: Params) -> Reader[object]:
    return (yield Get("/version"))


def build(version: object, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: the version of the API server. The console adds the user and the locked versions."""
    known = version if isinstance(version, dict) else {}
    why = version.reason if isinstance(version, Unread) else ""
    return {"api_server": str(known.get("gitVersion", "")), "platform": str(known.get("platform", "")), "unread": why}


PAGE = Page("about", "/about", read, build)


PAGES: tuple[Page, ...] = (
    runs_page.PAGE,
    run_page.PAGE,
    nodes_page.PAGE,
    receipts.LIST,
    receipts.ONE,
    cluster_page.KINDS,
    cluster_page.OBJECTS,
    cluster_page.OBJECT,
    cluster_page.OF_CLUSTER,
    PAGE,
)
