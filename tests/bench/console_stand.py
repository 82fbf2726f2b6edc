"""The console of a running lab, and browsers for it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mishaps import until
from playwright.sync_api import Browser, BrowserContext, Page
from stand import NAMESPACE, Stand
from timed import BenchError

from tests.browser.chromium import chromium
from trainyard.trainings.log_events import events

WAIT_SECONDS, LIMIT = 60.0, 180.0
"""Limits for a page's expected reaction, and for the cluster."""
REMEMBERED_SECONDS = 10.0
"""Time for which the API server still accepts a revoked token."""
RUN = "console-long"
LONG: dict[str, Any] = {"workload": "mnist_ps", "run": RUN, "train_steps": 200_000, "checkpoint_every": 500}
"""A training that does not end before it is stopped."""
OPERATOR, VIEWER = "alice", "bob"
"""Users of inventories/lab, by their level."""
DRAWN = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (each) => window.reports.push(each.violatedDirective));
window.drawn = [];
const look = () => {
  for (const figure of document.querySelectorAll("[data-curve]")) {
    // Behind the watched attempt lie earlier ones, which may have come further.
    const [steps, values] = figure.curve?.plot?.data ?? [[], []];
    const last = steps[values.findLastIndex((value) => value !== null && value !== undefined)];
    const tag = figure.dataset.curve;
    if (last === undefined || last === figure.drawnLast) continue;
    figure.drawnLast = last;
    window.drawn.push([tag, last, Date.now() / 1000]);
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
"""Records when the last point of each curve of the watched attempt changed, as drawn after each frame."""
POINTS = "(figure) => figure.curve.points"


@dataclass
class Visit:
    """A browser that trusts the site's certificate authority, and logins by `trainyard token`.

    :param logins: user -> name of the latest login, which console_revoke.yml takes.
    :param files: user -> file with the latest token.
    """

    stand: Stand
    browser: Browser
    address: str
    logins: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    def token(self, user: str) -> str:
        _, said = self.stand.program("token", user)
        told = dict(line.split(maxsplit=1) for line in said.splitlines() if " " in line)
        self.logins[user] = told["login"].strip()
        self.files[user] = Path(told["file"].strip())
        return self.files[user].read_text(encoding="utf-8").strip()

    def context(self, **options: Any) -> BrowserContext:
        found = self.browser.new_context(base_url=self.address, **options)
        found.set_default_timeout(1000 * WAIT_SECONDS)
        found.add_init_script(DRAWN)
        return found

    def window(self, user: str = OPERATOR, token: str = "", **options: Any) -> Page:
        """Return a page after its login."""
        page = self.context(**options).new_page()
        log_in(page, token or self.token(user))
        page.get_by_role("heading", name="Runs", level=1).wait_for()
        return page


def log_in(page: Page, token: str) -> None:
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def path_of(run: str) -> str:
    return f"/runs/{NAMESPACE}/{run}"


FETCH = """async ([path, method, headers]) => {
  const answer = await fetch(path, { method, headers });
  return [answer.status, await answer.text()];
}"""


def ask(page: Page, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Return status and text of an answer to a request of the page, whose certificate is checked like the page's."""
    status, text = page.evaluate(FETCH, [path, method, headers])
    return int(status), str(text)


def view(page: Page, run: str) -> dict[str, Any]:
    """Return the console's JSON of a run.

    :raises BenchError: the answer is not 200.
    """
    status, text = ask(page, f"/api/v1{path_of(run)}")
    if status != 200:
        raise BenchError(f"The console answers {status} for the run {run}.")
    found: dict[str, Any] = json.loads(text)
    return found


def stop(page: Page, run: str) -> None:
    """Stop a run by the button of its page, and wait until its record says so.

    Its state is `ended` before that: its object is deleted first, and its step is recorded when its pods have saved.
    """
    page.locator("summary", has_text="Stop").click()
    page.locator("details[open] button", has_text="Stop").click()
    until("the record of the stop", lambda: view(page, run)["state"] == "stopped", LIMIT)


def points(page: Page, tag: str) -> list[list[float]]:
    found: list[list[float]] = page.locator(f"[data-curve={tag}]").evaluate(POINTS)
    return found


def address(stand: Stand) -> str:
    """Return the address of the console, from `trainyard console` with an open node port."""
    return stand.program("console")[1].strip().splitlines()[-1].rstrip("/")


def begin(visit: Visit, entry: Mapping[str, Any]) -> None:
    """Submit a run from scratch, without waiting for it."""
    visit.stand.forget(str(entry["run"]))
    visit.stand.train(entry, wait="false")


def said(visit: Visit, run: str) -> list[dict[str, Any]]:
    """Return the events of the current chief."""
    found: list[dict[str, Any]] = []
    for pod in visit.stand.pods(run, "chief"):
        if (pod.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed"):
            found += events(visit.stand.api.log(NAMESPACE, pod["metadata"]["name"]))
    return sorted(found, key=lambda event: float(event["time"]))


def last_step(visit: Visit, run: str) -> int:
    return max((int(event["step"]) for event in said(visit, run) if event["event"] == "step"), default=0)


def grows(page: Page, what: str, seconds: float = LIMIT) -> float:
    """Return the seconds until the curve on a page has another point."""
    before, started = points(page, "loss")[-1:], time.monotonic()
    until(what, lambda: points(page, "loss")[-1:] != before, seconds, pause=0.1)
    return time.monotonic() - started


def revoke(visit: Visit, user: str) -> float:
    """Revoke the latest login; return when it was removed, after waiting for the API server's cache."""
    named = visit.logins[user]
    visit.stand.play("playbooks/console_revoke.yml", "-e", f"console_token={named}", "-e", f"console_confirm={named}")
    ended = time.monotonic()
    time.sleep(REMEMBERED_SECONDS)
    return ended


@contextmanager
def visiting(stand: Stand, home: Path) -> Iterator[Visit]:
    """Open a browser for the console of a lab."""
    with chromium(home, stand.state / "console" / "ca.crt") as browser:
        yield Visit(stand, browser, address(stand))
