"""Events of the cluster, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ...core.untrusted import at, whole
from .words import ago, clock, duration


def events(found: Iterable[Mapping[str, Any]], now: datetime, limit: int = 50) -> list[dict[str, Any]]:
    """Return events as rows.

    :param found: events of the API core/v1.
    """
    rows = [
        {
            "time": clock(time(each)),
            "age": duration(ago(time(each), now)),
            "warning": each.get("type") == "Warning",
            "reason": str(each.get("reason") or ""),
            "object": _object(each.get("involvedObject") or {}),
            "message": str(each.get("message") or "").strip(),
            "count": whole(each.get("count")) or whole(at(each, "series", "count")) or 1,
        }
        for each in sorted(found, key=time, reverse=True)
    ]
    return rows[:limit]


def time(event: Mapping[str, Any]) -> str:
    """Return when an event was last seen; the field depends on the component that wrote it."""
    series = at(event, "series", "lastObservedTime")
    stamps = (series, event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return str(next((each for each in stamps if each), ""))


def _object(about: Mapping[str, Any]) -> str:
    return f"{about.get('kind', '')} {about.get('name', '')}".strip()
