"""Disturbances while a user watches the console of a lab, and an operator's actions on a run."""

from __future__ import annotations

import time
from typing import Any

from console_stand import LIMIT, OPERATOR, RUN, Visit, grows, last_step, path_of, revoke, said, stop, view
from mishaps import until
from playwright.sync_api import expect
from timed import BenchError

STOP_API_SERVER = "crictl ps --quiet --name kube-apiserver | xargs --no-run-if-empty crictl stop --timeout 0"
NOTICE_SECONDS, REVOKED_SECONDS, BACK_SECONDS = 10.0, 75.0, 120.0
"""Limits. The console checks its viewers once a minute."""


def api_server_away(visit: Visit) -> str:
    """Stop and restart the API server: a notice appears, and the page is live again without a reload."""
    page = visit.window()
    page.goto(path_of(RUN))
    grows(page, "a point before")
    visit.stand.on_node("cp1", "sh", "-c", "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/")
    try:
        visit.stand.on_node("cp1", "sh", "-c", STOP_API_SERVER)
        started = time.monotonic()
        expect(page.locator("#notice")).to_be_visible(timeout=1000 * LIMIT)
        notice = time.monotonic() - started
    finally:
        visit.stand.on_node("cp1", "sh", "-c", "mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/")
    until("the API server", lambda: answers(visit), BACK_SECONDS)
    started = time.monotonic()
    expect(page.locator("#notice")).to_be_hidden(timeout=1000 * LIMIT)
    grows(page, "a point after it came back", BACK_SECONDS)
    back = time.monotonic() - started
    if notice > NOTICE_SECONDS:
        raise BenchError(f"The notice came after {notice:.1f} s.")
    page.context.close()
    return f"a notice after {notice:.1f} s, a new point {back:.1f} s after it was back"


def answers(visit: Visit) -> bool:
    try:
        return bool(visit.stand.api.list("v1", "Node"))
    except Exception:  # an absent API server causes different errors
        return False


def revoked_while_watching(visit: Visit) -> str:
    """Revoke a user's token while the page is open."""
    page = visit.window()
    page.goto(path_of(RUN))
    grows(page, "a point before")
    ended = revoke(visit, OPERATOR)
    expect(page.get_by_label("Token")).to_be_visible(timeout=1000 * REVOKED_SECONDS)
    seconds = time.monotonic() - ended
    page.context.close()
    return f"the page asks for a login {seconds:.0f} s after the token was revoked"


def stop_and_continue(visit: Visit) -> str:
    """Stop a run and continue it from exactly the same step."""
    page = visit.window()
    page.goto(path_of(RUN))
    grows(page, "a point before")
    stop(page, RUN)
    stopped = visit.stand.record(RUN)
    page.goto(path_of(RUN))
    page.locator("summary", has_text="Continue").click()
    page.locator("details[open] button", has_text="Continue").click()

    def restored() -> list[dict[str, Any]]:
        return [event for event in said(visit, RUN) if event["event"] == "restore"]

    (*_, event) = until("the run going on", restored, LIMIT)
    if stopped.get("result") != "stopped" or event["step"] != stopped.get("steps"):
        how = f"{stopped.get('result')} at step {stopped.get('steps')}"
        raise BenchError(f"Stopped as {how}; continued from step {event['step']}.")
    grows(page, "a point after")
    page.context.close()
    return f"stopped at step {stopped['steps']}, went on from step {event['step']}"


def restart(visit: Visit) -> str:
    """Restart a run: a new attempt from the first step, with the earlier one in the list."""
    page = visit.window()
    page.goto(path_of(RUN))
    before = view(page, RUN)["attempt"]
    page.locator("summary", has_text="Restart").click()
    page.locator("details[open] button", has_text="Restart").click()
    until("another attempt", lambda: view(page, RUN)["attempt"] not in ("", before), LIMIT)
    until("its first step", lambda: last_step(visit, RUN) > 0, LIMIT)
    if any(event["event"] == "restore" for event in said(visit, RUN)):
        raise BenchError("A restarted run has gone on from a checkpoint.")
    page.context.close()
    return "a new attempt, from the first step"
