"""Checks of the table for an observation; a part that a test does not give could not be read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from trainyard.unmanaged.rendered import Rendered
from trainyard.verify.access_checks import Access, Judge, nothing_known
from trainyard.verify.checks import SITE, SiteView, checks_of
from trainyard.verify.cluster_checks import Expected
from trainyard.verify.observation import Observation, Unread, nothing_read
from trainyard.verify.verdict import Check

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
ABOUT_RIGHTS = ("rights", "doors")
"""Checks of objects of others, which have tests of their own."""


def site_checks(
    expected: Expected,
    seen: Observation | None = None,
    access: Access | None = None,
    names: Collection[str] = (),
) -> list[Check]:
    """Return the checks of the site itself.

    :param names: of the checks; empty for all but those of rights.
    """
    rows = [row for row in SITE if (row.name in names if names else row.name not in ABOUT_RIGHTS)]
    unread = nothing_known(Unread("-"))
    judge = Judge(Rendered(frozenset(), {}))
    return checks_of(rows, SiteView(expected, seen or nothing_read(Unread("-")), access or unread, judge, NOW))
