"""Measures of a lab's console: the delay from a line to the drawn point, the cost of watching, the first page."""

from __future__ import annotations

import asyncio
import bisect
import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import pairwise

from catalogue import Aim
from console_load import watch_all
from console_stand import OPERATOR, Visit, ask, log_in, path_of, points, said
from mishaps import until
from playwright.sync_api import Page, Request
from timed import BenchError

SITE_RUN, WATCHED = "mnist-ps", "console-watched"
FEW, PAIRS, LOADS = 10, 5, 5
STEPS = 2000
POINT = "a step's line in the chief's log to the drawn point, during site.yml: p95"
RATIO = "steps per second, 10 watch / no viewer"
BYTES, LOAD = "first pages (login and Runs), bytes over the wire", "Runs, in the lab's Chromium"
CONSOLE, BOARD = "memory: console, 20 viewers", "memory: TensorBoard"
WHOLE, RESIDENT = "memory: the whole lab, working set", "memory: the whole lab, without file cache"
MADE = "memory: the whole lab before that, with the file cache that its making has left"
AIMS = {
    POINT: Aim(1.0, digits=2),
    RATIO: Aim(0.98, at_least=True, unit="", digits=3, ratio=True),
    BYTES: Aim(150.0, unit=" KB", digits=0),
    LOAD: Aim(1.0, digits=2),
    CONSOLE: Aim(120.0, unit=" MB", digits=0),
    BOARD: Aim(150.0, unit=" MB", digits=0),
    WHOLE: Aim(6.0, unit=" GB", digits=2),
    RESIDENT: Aim(unit=" GB", digits=2),
    MADE: Aim(unit=" GB", digits=2),
}
LOADED = """() => {
  const [first] = performance.getEntriesByType("navigation");
  return first.loadEventEnd - first.startTime;
}"""


def delays(steps: Sequence[tuple[int, float]], drawn: Sequence[tuple[int, float]], since: float) -> list[float]:
    """Return the seconds from each line to the frame in which its point, or a later one, was the last of the curve.

    :param steps: (step, time of the line), as logged by the chief.
    :param drawn: (last step of the curve, time of the frame), in the order of frames, each with a different step.
    :param since: earlier lines are left out: the page was opened with them.
    """
    # If the curve became shorter, it was that of another attempt before.
    begin = max((index for index, (one, two) in enumerate(pairwise(drawn), 1) if two[0] < one[0]), default=0)
    reached = drawn[begin:]
    found = []
    for step, moment in (each for each in steps if each[1] >= since):
        index = bisect.bisect_left(reached, (step, 0.0))
        if index == len(reached):
            raise BenchError(f"Step {step} was never drawn.")
        found.append(reached[index][1] - moment)
    return found


def live(visit: Visit) -> dict[str, list[float]]:
    """Watch the run of site.yml, which trains from scratch, from its first moment."""
    window = visit.window()
    before = _attempt(window)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(visit.stand.play, "site.yml", "-e", "workloads_state=restarted")
        until("the new run", lambda: run.done() or _attempt(window) not in ("", before), 300.0)
        window.goto(path_of(SITE_RUN))
        since = time.time()
        # The page continues to work while no test code drives the browser.
        run.result()
        window.wait_for_timeout(2000)
    steps = [(int(each["step"]), float(each["time"])) for each in said(visit, SITE_RUN) if each["event"] == "step"]
    told = window.evaluate("() => window.drawn")
    drawn = [(int(step), float(moment)) for tag, step, moment in told if tag == "loss"]
    found = delays(steps, drawn, since)
    if len(found) < 20:
        raise BenchError(f"Only {len(found)} lines came while the page was open.")
    if window.evaluate("() => window.reports") or len(points(window, "loss")) < len(found):
        raise BenchError("The page has lost points, or its policy was reported.")
    window.context.close()
    print(
        f"console: {len(found)} points, median {statistics.median(found):.2f} s, worst {max(found):.2f} s", flush=True
    )
    return {POINT: [statistics.quantiles(found, n=20)[-1]]}


def _attempt(window: Page) -> str:
    status, text = ask(window, f"/api/v1{path_of(SITE_RUN)}")
    return str(json.loads(text)["attempt"]) if status == 200 else ""


@contextmanager
def watchers(visit: Visit, run: str, number: int) -> Iterator[None]:
    """Simulate viewers of a run, with a browser's requests, but without drawing."""
    loop, ended, authority = asyncio.new_event_loop(), threading.Event(), visit.stand.state / "console" / "ca.crt"
    token = visit.token(OPERATOR)

    async def watch() -> None:
        try:
            await watch_all(visit.address, token, authority, path_of(run), number)
        finally:
            ended.set()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    task = asyncio.run_coroutine_threadsafe(watch(), loop)
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        # All connections are closed before their loop ends.
        ended.wait(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


def rate(visit: Visit, seen: int = 0) -> float:
    """Return the steps per second of one run with this number of viewers."""
    entry = {"workload": "mnist_ps", "run": WATCHED, "train_steps": STEPS, "accuracy_bound": 0.9}
    visit.stand.forget(WATCHED)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(visit.stand.train, entry)
        until("a pod of the run", lambda: run.done() or visit.stand.pods(WATCHED), 120.0)
        with watchers(visit, WATCHED, seen) if seen else nullcontext():
            run.result()
    return float(visit.stand.record(WATCHED)["steps_per_second"])


def watched(visit: Visit) -> dict[str, list[float]]:
    """Run the same training with no viewer and with ten viewers, in turn."""
    ratios = []
    for number in range(PAIRS):
        sides = {seen: rate(visit, seen) for seen in ((0, FEW) if number % 2 else (FEW, 0))}
        ratios.append(sides[FEW] / sides[0])
        print(f"console: pair {number + 1}: {sides[FEW]:.1f} / {sides[0]:.1f} steps per second", flush=True)
    return {RATIO: ratios}


def first_page(visit: Visit) -> dict[str, list[float]]:
    """Load login and Runs, in a browser without a cache."""
    sizes, seconds, token = [], [], visit.token(OPERATOR)
    for _ in range(LOADS):
        came: list[Request] = []
        window = visit.context().new_page()
        window.on("requestfinished", lambda each, came=came: came.append(each))
        log_in(window, token)
        window.get_by_role("heading", name="Runs", level=1).wait_for()
        window.wait_for_timeout(500)
        each = [request.sizes() for request in came if "/events" not in request.url]
        sizes.append(sum(one["responseBodySize"] + one["responseHeadersSize"] for one in each) / 1e3)
        seconds.append(window.evaluate(LOADED) / 1e3)
        window.context.close()
    return {BYTES: sizes, LOAD: seconds}
