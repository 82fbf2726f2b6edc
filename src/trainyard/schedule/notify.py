"""Send notices and write metrics after a run, without changing the exit status.

Parts: the hooks; the state of a site after a run, and its notices; the work after a run. Hooks are commands, and
webhooks over TLS. They never raise, and each has a time limit.
"""

from __future__ import annotations

import json
import math
import os
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.files import write
from ..core.waiter import CLOCK, Clock
from ..drift.items import DONE, PROVEN
from ..drift.report import RUNNING, of_the_site
from ..drift.report_run import Session
from ..drift.report_store import Store
from ..drift.settings import Site
from ..site.schedule import next_elapse
from . import schedule_metrics

COMMAND_SECONDS = 30.0
WEBHOOK_SECONDS = 10.0
TRIES = 3
HANDED_ON = ("PATH", "LANG", "HOME")
"""Environment variables that a command receives."""

PAUSE_SECONDS = 2.0
"""Pause between two tries of a webhook."""

Post = Callable[[str, bytes, float], int]
"""(address, body, seconds) -> status of HTTP. Raises OSError; the errors of urllib are subclasses."""


@dataclass(frozen=True)
class Failure:
    """A failed hook.

    :param hook: its name in the inventory.
    :param tries: number of calls.
    :param reason: one clause; never the address, which may hold a token.
    """

    hook: str
    tries: int
    reason: str

    def __str__(self) -> str:
        times = "" if self.tries == 1 else f" {self.tries} times"
        return f"the hook {self.hook} failed{times}: {self.reason}"


def call_hooks(
    hooks: Sequence[Mapping[str, Any]],
    message: Mapping[str, Any],
    *,
    command: Callable[..., CompletedProcess[str]] = run,
    post: Post | None = None,
    clock: Clock = CLOCK,
    left: Callable[[], float] = lambda: math.inf,
) -> list[Failure]:
    """Call each hook with a message, and return the failures. They do not change the exit status of a run.

    :param hooks: `name`, and `command` (argv; receives the message as JSON on standard input) or `webhook` (https).
    :param message: plain data without secrets.
    :param left: returns the remaining seconds of the run for all hooks.
    """
    body = json.dumps(message, sort_keys=True).encode()
    failures = []
    for index, hook in enumerate(hooks):
        name = str(hook.get("name") or f"number {index + 1}")
        try:
            failure = (
                (0, "the time of the run was up")
                if left() <= 0
                else _webhook(str(hook["webhook"]), body, post or _post, clock, left)
                if hook.get("webhook")
                else _command([str(word) for word in hook["command"]], body, command, min(COMMAND_SECONDS, left()))
            )
        except Exception as error:  # a hook is foreign code and configuration; the run continues
            failure = 1, f"{type(error).__name__}"
        if failure:
            failures.append(Failure(name, *failure))
    return failures


def _command(
    argv: list[str], body: bytes, command: Callable[..., CompletedProcess[str]], seconds: float
) -> tuple[int, str] | None:
    try:
        # The service's environment has the paths of the vault's password and of all credentials.
        env = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        command(argv, timeout=seconds, stdin=body, cwd="/", env={"LANG": "C.UTF-8", **env}, inherit=False)
    except TrainyardError as error:
        return 1, error.message.rstrip(".")
    return None


def _webhook(address: str, body: bytes, post: Post, clock: Clock, left: Callable[[], float]) -> tuple[int, str] | None:
    if urlsplit(address).scheme != "https":
        return 0, "its address is not an https URL"
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            clock.sleep(PAUSE_SECONDS)
        seconds = min(WEBHOOK_SECONDS, left())
        if seconds <= 0:
            return attempt, f"{reason}; the time of the run was up"
        try:
            status = _bounded(partial(post, address, body, seconds), seconds)
        except TimeoutError:
            reason = f"no answer within {seconds:.0f} s"
        except (OSError, HTTPException) as error:
            reason = _said(error)
        else:
            if 200 <= status < 300:
                return None
            reason = f"the server answered with status {status}"
    return TRIES, reason


def _bounded(work: Callable[[], int], seconds: float) -> int:
    """Return the result of work within a time limit. A server that sends slowly can exceed the limits of urllib.

    :raises TimeoutError: the work has not ended; its thread ends with the process.
    """
    results: list[int] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the waiting thread
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they could lead away from TLS, and turn a POST into a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _post(address: str, body: bytes, seconds: float) -> int:
    """Send a POST with a certificate check, and return the status."""
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "application/json"}, method="POST")  # noqa: S310 - https, checked by the caller
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)


def _said(error: Exception) -> str:
    """Return why a call failed, without its address."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {WEBHOOK_SECONDS:.0f} s"
    return str(getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or type(reason).__name__)


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
