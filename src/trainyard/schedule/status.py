"""The status of reprovisioning: last and next run, running processes, and the drift with its age."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.errors import TrainyardError
from ..drift.report import EXIT_CLEAN, EXIT_DRIFT, EXIT_UNKNOWN, RUNNING, of_the_site
from ..drift.report_store import BusyError, Store
from ..drift.settings import Site
from ..site.schedule import next_elapse
from ..site_lock import machine_lock

LIMITS = ("max_hosts", "max_items", "max_unreachable", "batch", "canary", "windows")


@dataclass(frozen=True)
class Status:
    """The status of a site's reprovisioning. Times are in seconds since the epoch.

    :param last: report of the last ended run of the whole site; None if there is none.
    :param running: report of the current run; None without one.
    :param busy: whether a process uses the state directory.
    :param holder: the process that holds the site on this machine, maybe of another verb; empty without one.
    :param next_run: when the timer is due; None if unknown, with the reason in `next_note`.
    :param oldest: when the oldest drift was first seen; None without drift.
    """

    last: dict[str, Any] | None
    running: dict[str, Any] | None
    busy: bool
    holder: str
    enabled: bool
    mode: str
    next_run: float | None
    next_note: str
    oldest: float | None
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        if self.last is None or self.last["exit_status"] in (None, EXIT_UNKNOWN):
            return EXIT_UNKNOWN
        return EXIT_CLEAN if self.last["exit_status"] == EXIT_CLEAN else EXIT_DRIFT

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def status_of(site: Site, store: Store, now: float, due: Callable[[str, float], float | None] = next_elapse) -> Status:
    """Return the status of a site.

    :param now: seconds since the epoch.
    :param due: returns when a schedule is due after a moment (a test double in tests).
    """
    reports = store.reports()
    last = next((each for each in of_the_site(reports) if each["state"] != RUNNING), None)
    busy = _busy(store)
    next_run, note = None, ""
    if not site.settings.enabled:
        note = "turned off (reprovision_enabled)"
    else:
        try:
            next_run = due(site.settings.schedule, now)
        except TrainyardError as error:
            note = error.message
    items: list[Mapping[str, Any]] = (last or {}).get("items") or []
    return Status(
        last=last,
        running=next((each for each in reports if each["state"] == RUNNING), None) if busy else None,
        busy=busy,
        holder=str(machine_lock.holder(site.site_dir) or ""),
        enabled=site.settings.enabled,
        mode=site.settings.mode,
        next_run=next_run,
        next_note=note,
        oldest=min((each["first_seen"] for each in items if each["first_seen"]), default=None),
        limits={name: getattr(site.settings, name) for name in LIMITS},
    )


def _busy(store: Store) -> bool:
    if not store.folder.exists():
        return False
    try:
        with store.locked():
            return False
    except BusyError:
        return True
