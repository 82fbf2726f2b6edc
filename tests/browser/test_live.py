"""Pages that are live: curves, logs, actions, and what they give up when nobody looks."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.cluster_api import CHIEF
from tests.browser.conftest import WAIT_SECONDS, Running, Window
from tests.browser.lines import evaluate, step
from tests.browser.world import HOSTILE, SPACE

RUN = f"/runs/{SPACE}/mnist-ps"
POD = "mnist-ps-chief-0-0-ax9k2"
POINTS = "(figure) => figure.curve.points"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""

pytestmark = pytest.mark.browser


@pytest.fixture
def console(start: Callable[..., Running]) -> Running:
    """One for each test, because what is said stays said."""
    return start()


def points(page: Page, tag: str) -> list[list[float]]:
    found: list[list[float]] = page.locator(f"[data-curve={tag}]").evaluate(POINTS)
    return found


def until(condition: Callable[[], bool], page: Page) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come"
        page.wait_for_timeout(100)


def say_steps(console: Running, *numbers: int) -> None:
    now = time.time()
    for number in numbers:
        console.says(CHIEF, step(number, now + number / 1e4))
        if number % 200 == 0:
            console.says(CHIEF, evaluate(number, now + number / 1e4))


def test_the_curve_has_the_very_points_that_the_chief_says(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    assert len(points(page, "loss")) == 62
    until(lambda: CHIEF in console.api.streams, page)
    say_steps(console, *range(1260, 1801, 20))
    until(lambda: points(page, "loss")[-1][0] == 1800, page)
    expect(page.locator("[data-text='shown.step']")).to_have_text("1,800 of 2,000")
    assert points(page, "loss") == [[n, step(n, 0)["loss"]] for n in range(20, 1801, 20)]
    assert points(page, "steps_per_second") == [[n, step(n, 0)["steps_per_second"]] for n in range(20, 1801, 20)]
    assert points(page, "accuracy") == [[n, evaluate(n, 0)["accuracy"]] for n in range(200, 1801, 200)]
    # What is drawn is what is known.
    drawn = page.locator("[data-curve=loss]").evaluate("(figure) => figure.curve.plot.data[0].at(-1)")
    assert drawn == 1800


def test_steps_that_are_done_again_take_the_place_of_the_lost(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    until(lambda: CHIEF in console.api.streams, page)
    say_steps(console, 1260, 1280)
    until(lambda: points(page, "loss")[-1][0] == 1280, page)
    now = time.time() + 1
    console.says(CHIEF, {"event": "restore", "time": now, "step": 1200}, {**step(1220, now + 1), "loss": 0.5})
    until(lambda: points(page, "loss")[-1] == [1220, 0.5], page)
    assert [each for each, _ in points(page, "loss")] == list(range(20, 1221, 20))


def test_a_hidden_tab_gives_up_its_stream_and_misses_nothing(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    until(lambda: CHIEF in console.api.streams, page)
    until(lambda: len(console.stand.console.feeds) == 1, page)
    page.evaluate(HIDE, True)
    until(lambda: len(console.stand.console.feeds) == 0, page)
    say_steps(console, 1260, 1280)
    page.wait_for_timeout(300)
    assert points(page, "loss")[-1][0] == 1240
    page.evaluate(HIDE, False)
    until(lambda: points(page, "loss")[-1][0] == 1280, page)
    assert [each for each, _ in points(page, "loss")] == list(range(20, 1281, 20))


def test_a_log_is_shown_and_followed(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    page.get_by_role("button", name="Show").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text('"step": 1240')
    page.get_by_label("follow").check()
    expect(log).to_contain_text('"step": 1240')
    console.says(CHIEF, f"a line of {HOSTILE} TensorFlow")
    expect(log).to_contain_text(f"a line of {HOSTILE} TensorFlow")
    assert log.locator("*").count() == 0, "a line of a log has become markup"


def test_hostile_text_is_text_everywhere(start: Callable[..., Running], window: Callable[..., Window]) -> None:
    console = start(hostile=True)
    found = window(console)
    page = found.goto(RUN)
    until(lambda: CHIEF in console.api.streams, page)
    odd = {"event": "step", "time": time.time(), "step": HOSTILE, "steps_total": "<b>", "loss": "<i>1</i>"}
    console.says(CHIEF, odd, {**step(1300, time.time()), "role": HOSTILE, "extra": HOSTILE})
    until(lambda: points(page, "loss")[-1][0] == 1300, page)
    for path in ("", f"/runs/{SPACE}/wide", f"/runs/{SPACE}/bound", "/", "/receipts", "/nodes", f"{RUN}?log={POD}"):
        if path:
            found.goto(path)
        assert page.locator("main img, main i, [onerror]").count() == 0
        assert page.evaluate("window.reports") == [] and found.seen.errors == []
    assert HOSTILE in found.goto("/").locator("main").inner_text()


def test_a_viewer_sees_no_buttons_and_an_operator_those_that_fit(
    console: Running, window: Callable[..., Window]
) -> None:
    page = window(console, "viewer").goto(RUN)
    assert page.locator("form[data-action]").count() == 0
    page = window(console, "operator").goto(RUN)
    shown = page.locator("details.menu > summary").all_inner_texts()
    assert shown == ["Stop", "Restart", "Delete"]


def test_what_came_of_an_action_is_said(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    page.locator("summary", has_text="Delete").click()
    page.get_by_label("Name of the run").fill("mnist-ps")
    # Its session ends meanwhile: the page says so, and does not pretend.
    page.route("**/mnist-ps/delete", lambda route: route.fulfill(status=409, json={"error": "It is in use."}))
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#notice")).to_have_text("It is in use.")
    page.route("**/mnist-ps/delete", lambda route: route.fulfill(status=200, json={"message": "It is gone."}))
    page.locator("summary", has_text="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#notice")).to_have_text("It is gone.")


def test_everything_by_keyboard(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto(RUN)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    stop = page.locator("summary", has_text="Stop")
    for _ in range(30):
        if stop.evaluate("(each) => each === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(stop).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("details[open] button")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("details[open]")).to_have_count(0)
    expect(stop).to_be_focused()


def test_lists_stay_as_they_are_in_the_cluster(console: Running, window: Callable[..., Window]) -> None:
    page = window(console).goto("/")
    expect(page.locator("[data-live=active]")).to_contain_text("1,240 of 2,000")
    say_steps(console, 1300)
    expect(page.locator("[data-live=active]")).to_contain_text("1,300 of 2,000")
    console.api.down = True
    expect(page.locator("#notice")).to_be_visible(timeout=WAIT_SECONDS * 1000)
    expect(page.locator("[data-live=active]")).to_contain_text("1,300 of 2,000")
    console.api.down = False
    expect(page.locator("#notice")).to_be_hidden(timeout=WAIT_SECONDS * 1000)
