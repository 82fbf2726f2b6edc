"""Send notices and write metrics after a run. Neither changes the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from . import hooks, metrics, states
from .report import RUNNING, of_the_site
from .run import Session
from .schedule import next_elapse
from .settings import Site
from .store import Store

STATE = "state.json"

Due = Callable[[str, float], float | None]
Tell = Callable[..., Sequence[hooks.Failure]]


def follow(session: Session, *, tell: Tell = hooks.tell, due: Due = next_elapse) -> None:
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


def message(site: Site, report: dict[str, Any], notice: states.Notice) -> dict[str, Any]:
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
    told, notice = states.step(states.load(path), states.state_of(session.report), session.clock.time())
    failed: list[str] = []
    if notice:
        said, hooks_ = message(session.site, session.report, notice), session.site.settings.hooks
        left = lambda: session.deadline.closing  # noqa: E731 - less for each hook
        failed = [str(each) for each in tell(hooks_, said, clock=session.clock, left=left)]
    try:
        # Saved last: after a power cut a repeated notice is better than a lost one.
        if told:
            states.save(path, told)
    except (TrainyardError, OSError) as error:
        failed.append(f"the announced state cannot be saved: {error}")
    return failed


def _measured(site: Site, store: Store, report: dict[str, Any], due: Due, *, lock_refused: bool = False) -> list[str]:
    path = site.settings.metrics_file
    if not path:
        return []
    ended = [each for each in of_the_site(store.reports()) if each["ended"]]
    good = [each["ended"] for each in ended if each["exit_status"] in metrics.SUCCESS]
    listed = metrics.metrics(
        report, site=name_of(site), last_success=max(good, default=0.0), lock_refused=lock_refused,
        interval=_interval(site, float(report["began"]), due),
    )  # fmt: skip
    try:
        metrics.write(path, listed)
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
