"""Actions of users with the console of a lab, each in a real browser with a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import inputs
from console_canary import canary
from console_changes import api_server_away, restart, revoked_while_watching, stop_and_continue
from console_stand import (
    LIMIT,
    LONG,
    OPERATOR,
    RUN,
    VIEWER,
    Visit,
    ask,
    begin,
    grows,
    last_step,
    log_in,
    path_of,
    points,
    revoke,
    stop,
    view,
)
from mishaps import until
from playwright.sync_api import expect
from stand import NAMESPACE
from timed import BenchError

from trainyard.trainings.log_events import events
from trainyard.trainings.names import ROLE_LABEL

WAITING, TABS = "console-waits", 8
NEVER: dict[str, Any] = {
    "workload": "mnist_ps",
    "run": WAITING,
    "worker": {"requests": {"memory": "900Gi"}, "limits": {"memory": "900Gi"}},
}
"""A run that fits on no node."""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""

Case = Callable[[Visit], str]
"""Runs a case and returns its result; raises an error if it fails."""


def logins(visit: Visit) -> str:
    """Log in with a valid token, one with a changed letter, and a revoked one; log out."""
    token = visit.token(OPERATOR)
    page = visit.context().new_page()
    wrong = token[:-5] + ("A" if token[-5] != "A" else "B") + token[-4:]
    log_in(page, wrong)
    expect(page).to_have_url(f"{visit.address}/login")
    log_in(page, token)
    page.get_by_role("heading", name="Runs", level=1).wait_for()
    page.get_by_role("button", name="Log out").click()
    page.goto("/")
    expect(page.get_by_label("Token")).to_be_visible()
    revoke(visit, OPERATOR)
    page = visit.context().new_page()
    log_in(page, token)
    expect(page).to_have_url(f"{visit.address}/login")
    return "a wrong and a revoked token are refused, a logout is one"


def live_and_tabs(visit: Visit) -> str:
    """Open eight tabs of one run; only the visible one is live."""
    begin(visit, LONG)
    until("a step", lambda: last_step(visit, RUN), LIMIT)
    first = visit.window()
    tabs = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for number, page in enumerate(tabs):
        page.goto(path_of(RUN))
        grows(page, f"a point in tab {number + 1}")
        page.evaluate(HIDE, True)
    tabs[0].evaluate(HIDE, False)
    seconds = grows(tabs[0], "a point in the first tab, shown again")
    for page in tabs:
        if page.evaluate("() => window.reports"):
            raise BenchError("The browser has refused something by the page's policy.")
    first.context.close()
    return f"each was live while it was shown; the first again after {seconds:.1f} s"


def viewer(visit: Visit) -> str:
    """Check that a viewer sees no button, and that a POST is refused anyway."""
    page = visit.window(VIEWER)
    page.goto(path_of(RUN))
    expect(page.locator("form[data-action]")).to_have_count(0)
    session = page.locator("[name=session]").first.get_attribute("value") or ""
    status, text = ask(page, f"/api/v1{path_of(RUN)}/stop", "POST", **{"X-Console-Session": session})
    if status != 403:
        raise BenchError(f"A viewer who stops a run is answered {status}: {text[:200]}")
    page.context.close()
    return "no button, and 403 for a stop"


def tensorboard(visit: Visit) -> str:
    """Check that TensorBoard shows the run, and that neither unauthenticated users nor pods of a training reach it."""
    page = visit.window()
    page.goto(path_of(RUN))
    link = page.get_by_role("link", name="TensorBoard").get_attribute("href") or ""
    page.goto(link)
    page.locator("canvas, svg.line-chart, card-view").first.wait_for()
    # The console has redirected the visit to a separate path; the page has no origin, and sends requests below that
    # path.
    shown = json.loads(ask(page, f"{page.url.partition('#')[0].partition('?')[0]}data/runs")[1])
    if not any(RUN in each for each in shown):
        raise BenchError(f"TensorBoard knows {shown}, and not {RUN}.")
    stranger = visit.context().new_page()
    stranger.goto(link)
    expect(stranger.get_by_label("Token")).to_be_visible()
    (service, *_) = [
        each["metadata"]["name"]
        for each in visit.stand.api.list("v1", "Service", NAMESPACE)
        if each["metadata"]["name"].startswith("tensorboard-")
    ]
    pod = next(each for each in visit.stand.pods(RUN) if each["metadata"]["labels"][ROLE_LABEL] == "worker")
    asked = f"import socket; socket.create_connection(('{service}.{NAMESPACE}.svc', 6006), 4)"
    kube = (
        "kubectl",
        "--kubeconfig=/etc/kubernetes/admin.conf",
        "-n",
        NAMESPACE,
        "exec",
        pod["metadata"]["name"],
        "--",
    )
    try:
        visit.stand.on_node("cp1", *kube, "python3", "-c", asked)
    except BenchError as error:
        if "timed out" not in str(error):
            raise
    else:
        raise BenchError("A pod of a training reaches TensorBoard.")
    page.context.close()
    return "it shows the run, sends a client without a login away, and a pod of a training does not reach it"


def curve(visit: Visit) -> str:
    """Compare the points on the page with those in the run's own file, one by one."""
    page = visit.window()
    page.goto(path_of(RUN))
    stop(page, RUN)
    page.wait_for_timeout(2000)
    attempt = view(page, RUN)["attempt"]
    text = visit.stand.on_node("cp1", "cat", f"{inputs.SHARED}/{RUN}/attempts/{attempt}/metrics.jsonl")
    written = {int(each["step"]): each["loss"] for each in events(text) if each["event"] == "step"}
    drawn = {int(step): value for step, value in points(page, "loss")}
    if drawn != {step: value for step, value in written.items() if step >= min(drawn)} or len(drawn) < 10:
        wrong = [step for step in drawn if drawn[step] != written.get(step)]
        raise BenchError(f"{len(drawn)} points are drawn and {len(written)} written; other values at {wrong[:5]}.")
    page.context.close()
    return f"{len(drawn)} points, each as it is in metrics.jsonl"


def why(visit: Visit) -> str:
    """Check that for a waiting run the page shows the same reason as `trainyard why`."""
    begin(visit, NEVER)
    page = visit.window()
    status, text = visit.stand.answer("why", WAITING, "--json")
    if status != 1:
        raise BenchError(f"trainyard why ends with {status}, not with 1 for a cause: {text[:500]}")
    told, shown = json.loads(text), view(page, WAITING)["why"]
    codes = [[each["code"] for each in answer["findings"]] for answer in (told, shown)]
    if codes[0] != codes[1] or codes[0][:1] != ["never_fits"] or told["unread"]:
        unread = [answer["unread"] for answer in (told, shown)]
        raise BenchError(f"The program says {codes[0]}, the page {codes[1]}; unread: {unread}.")
    page.goto("/")
    expect(page.locator("[data-live=queue]")).to_contain_text(WAITING)
    visit.stand.forget(WAITING)
    page.context.close()
    return f"both name {codes[0][0]}"


CASES: dict[str, Case] = {
    "login": logins,
    "eight tabs": live_and_tabs,
    "a viewer": viewer,
    "token canary": canary,
    "API server restarted": api_server_away,
    "revoked while watching": revoked_while_watching,
    "stop and continue": stop_and_continue,
    "restart": restart,
    "TensorBoard": tensorboard,
    "the curve": curve,
    "why": why,
}
"""The order matters: the long run begins with the second case and ends with the last but one."""
