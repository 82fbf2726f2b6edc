"""All pages of the console, in the order in which their paths are matched."""

from __future__ import annotations

from . import about, cluster, nodes, receipts, run, runs
from .page import Page

PAGES: tuple[Page, ...] = (
    runs.PAGE,
    run.PAGE,
    nodes.PAGE,
    receipts.LIST,
    receipts.ONE,
    cluster.KINDS,
    cluster.OBJECTS,
    cluster.OBJECT,
    cluster.OF_CLUSTER,
    about.PAGE,
)
