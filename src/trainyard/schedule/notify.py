"""Send notices and write metrics after a run, without changing the exit status.

Parts: the state of a site after a run, and its notices; the work after a run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..core.errors import TrainyardError
from ..core.files import write
from ..core.notifier import Failure, call_hooks
from ..drift.items import DONE, PROVEN
from ..drift.report import RUNNING, of_the_site
from ..drift.report_run import Session
from ..drift.report_store import Store
from ..drift.settings import Site
from ..site.schedule import next_elapse
from . import schedule_metrics

State = Literal["clean", "drift", "repaired", "person", "failed", "unknown"]
STATES: tuple[State, ...] = get_args(State)
WORDS: Mapping[State, str] = {
    "clean": "clean",
    "drift": "drift",
    "repaired": "drift repaired",
    "person": "an operator is needed",
    "failed": "a repair failed",
    "unknown": "unknown",
}
REMINDER_SECONDS = 20 * 3600.0
"""One day, minus a margin: the random delay of a nightly timer can move two runs closer together."""


@dataclass(frozen=True)
class LastNotice:
    """The state that was announced last.

    :param since: when the site entered the state, in seconds since the epoch.
    :param told: when the last notice was sent, in seconds since the epoch; 0 for never.
    """

    state: State
    since: float
    told: float


@dataclass(frozen=True)
class Notice:
    """A notice to send.

    :param before: the previous state; None for the first one.
    :param since: when the site entered the state, in seconds since the epoch.
    """

    kind: Literal["change", "reminder"]
    state: State
    before: State | None
    since: float

    @property
    def words(self) -> str:
        """Return the notice as one line of text."""
        again = "still: " if self.kind == "reminder" else ""
        return f"{again}{WORDS[self.state]}"


def state_of(report: Mapping[str, Any]) -> State | None:
    """Return the state that a report shows; None if another run held the lock, as such a report shows nothing.

    :param report: the content of a `report.json`.
    """
    status, items = report.get("exit_status"), report.get("items") or []
    if status == 4:
        return None
    if status == 5:
        return "failed"
    if status == 0:
        return "repaired" if any(item.get("outcome") in (DONE, PROVEN) for item in items) else "clean"
    if status == 1:
        return "person" if any(item.get("class") not in ("repairable", "restart") for item in items) else "drift"
    if status == 3:
        # A limit waits for an operator; a window opens by itself.
        return "person" if report.get("limits") else "drift"
    return "unknown"


def step(last: LastNotice | None, state: State | None, now: float) -> tuple[LastNotice | None, Notice | None]:
    """Return the announced state after a run, and the notice to send.

    Every change of state gives a notice. While an operator is needed, a reminder follows once a day. A clean first
    run gives none.

    :param last: the state that was announced last; None at the first run.
    :param state: the result of `state_of`.
    :param now: seconds since the epoch.
    """
    if state is None:
        return last, None
    if last is None or state != last.state:
        before = last.state if last else None
        quiet = last is None and state == "clean"
        return LastNotice(state, now, 0.0 if quiet else now), None if quiet else Notice("change", state, before, now)
    # A clock that was set back must not delay the reminder.
    if state == "person" and not 0 <= now - last.told < REMINDER_SECONDS:
        return replace(last, told=now), Notice("reminder", state, state, last.since)
    return last, None


def load(path: Path) -> LastNotice | None:
    """Return the saved state; None if there is no readable one, so that the next state is announced again."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        last = LastNotice(read["state"], float(read["since"]), float(read["told"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return last if last.state in STATES else None


def save(path: Path, last: LastNotice) -> None:
    """Save the announced state atomically.

    :raises TrainyardError: the disk refuses.
    """
    write(str(path), json.dumps(asdict(last)) + "\n", 0o600)


STATE = "state.json"

Due = Callable[[str, float], float | None]
Tell = Callable[..., Sequence[Failure]]


def follow(session: Session, *, tell: Tell = call_hooks, due: Due = next_elapse) -> None:
    """Announce a change of state, write the metrics, and note failures of both in the report.

    A run of some hosts does not describe the site, so nothing follows it.
    """
    if session.hosts:
        return
    failed = _told(session, tell) + _measured(session.site, session.store, session.report, due)
    if failed:
        notes = [session.masker.text(each) for each in failed]
        session.close({**session.report, "notes": [*session.report["notes"], *notes]})


def refused(site: Site, store: Store, *, due: Due = next_elapse) -> None:
    """Record in the metrics that another run holds the site, together with the results of the last run."""
    last = next((each for each in of_the_site(store.reports()) if each["state"] != RUNNING), None)
    if last:
        _measured(site, store, last, due, lock_refused=True)


def message(site: Site, report: dict[str, Any], notice: Notice) -> dict[str, Any]:
    """Return the message for the hooks, as plain data."""
    return {
        "schema": 1,
        "site": name_of(site),
        "kind": notice.kind,
        "state": notice.state,
        "before": notice.before,
        "since": notice.since,
        "text": f"{name_of(site)}: {notice.words}. {report['headline']}",
        **{name: report[name] for name in ("id", "mode", "exit_status", "headline", "revision", "limits")},
        "items": dict(Counter(each["class"] for each in report["items"])),
        "hosts": sorted(name for name, host in report["hosts"].items() if host["state"] != "clean"),
    }


def name_of(site: Site) -> str:
    """Return the name of the site's folder."""
    return Path(site.site_dir).name


def _told(session: Session, tell: Tell) -> list[str]:
    path = session.store.folder / STATE
    last, notice = step(load(path), state_of(session.report), session.clock.time())
    failed: list[str] = []
    if notice:
        said, hooks_ = message(session.site, session.report, notice), session.site.settings.hooks
        left = lambda: session.deadline.closing  # noqa: E731 - less for each hook
        failed = [str(each) for each in tell(hooks_, said, clock=session.clock, left=left)]
    try:
        # Saved last: after a power cut a repeated notice is better than a lost one.
        if last:
            save(path, last)
    except (TrainyardError, OSError) as error:
        failed.append(f"the announced state cannot be saved: {error}")
    return failed


def _measured(site: Site, store: Store, report: dict[str, Any], due: Due, *, lock_refused: bool = False) -> list[str]:
    path = site.settings.metrics_file
    if not path:
        return []
    ended = [each for each in of_the_site(store.reports()) if each["ended"]]
    good = [each["ended"] for each in ended if each["exit_status"] in schedule_metrics.SUCCESS]
    listed = schedule_metrics.metrics(
        report, site=name_of(site), last_success=max(good, default=0.0), lock_refused=lock_refused,
        interval=_interval(site, float(report["began"]), due),
    )  # fmt: skip
    try:
        schedule_metrics.write(path, listed)
    except (TrainyardError, OSError) as error:
        return [f"the metrics cannot be written: {error}"]
    return []


def _interval(site: Site, now: float, due: Due) -> float:
    """Return the seconds to the next run, or between the next two if longer, as a weekend may have no runs.

    The result is 0 if there is no next run, or if it is unknown.

    :param now: start of this run, in seconds since the epoch.
    """
    try:
        first = due(site.settings.schedule, now) if site.settings.enabled else None
        second = due(site.settings.schedule, first) if first else None
    except TrainyardError:
        return 0.0
    return max(first - now, second - first) if first and second else 0.0
