"""A page that is live says so when it is not any more, and no longer than that."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.cluster_api import CHIEF
from tests.browser.conftest import Running, Window
from tests.browser.test_live import HIDE, RUN, until
from tests.browser.world import SPACE

JOBSET = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{SPACE}/jobsets/mnist-ps"
STREAM = re.compile(r"/mnist-ps/events")

pytestmark = pytest.mark.browser


@pytest.fixture
def console(start: Callable[..., Running]) -> Running:
    return start()


@pytest.fixture
def page(console: Running, window: Callable[..., Window]) -> Page:
    found = window(console).goto(RUN)
    until(lambda: CHIEF in console.api.streams, found)
    return found


@pytest.fixture
def notice(page: Page) -> Locator:
    return page.locator("#notice")


def test_a_stream_that_is_refused_is_said_to_be_until_it_is_back(page: Page, notice: Locator) -> None:
    page.evaluate(HIDE, True)
    page.route(STREAM, lambda route: route.fulfill(status=503))
    page.evaluate(HIDE, False)
    expect(notice).to_contain_text("This page is not up to date (since ")
    page.unroute(STREAM)
    expect(notice).to_be_hidden()


def test_a_console_that_does_not_answer_is_said_not_to(page: Page, notice: Locator) -> None:
    page.evaluate(HIDE, True)
    page.route(STREAM, lambda route: route.abort())
    page.evaluate(HIDE, False)
    expect(notice).to_contain_text("This page is not up to date (since ")


def test_a_tab_that_was_hidden_for_longer_than_its_login_lasts_leads_to_the_login(console: Running, page: Page) -> None:
    page.evaluate(HIDE, True)
    until(lambda: len(console.stand.console.feeds) == 0, page)
    console.stand.clock.ahead += 1900
    page.evaluate(HIDE, False)
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_run_that_was_deleted_is_said_to_be(console: Running, notice: Locator) -> None:
    console.becomes(lambda: console.api.change("DELETED", JOBSET, console.api.objects[JOBSET]))
    expect(notice).to_contain_text("The run no longer exists")


def test_an_api_server_that_is_away_is_said_to_be_since_when(console: Running, notice: Locator) -> None:
    console.api.down = True
    console.becomes(console.api.break_streams)
    expect(notice).to_contain_text(re.compile(r"The API server does not answer; .* \(since \d\d:\d\d:\d\d UTC\)"))
    console.api.down = False
    expect(notice).to_be_hidden()


def test_a_page_that_was_kept_says_so_until_there_is_a_newer_one(console: Running, page: Page, notice: Locator) -> None:
    page.evaluate(HIDE, True)
    until(lambda: len(console.stand.console.feeds) == 0, page)
    console.api.down = True
    # Nobody knows any more what its reader may see, so that it gets no stream.
    console.stand.clock.ahead += 61
    page.reload()
    expect(notice).to_contain_text("This page is not up to date")
    expect(notice).to_have_attribute("data-kept", "yes")
    console.api.down = False
    expect(notice).to_be_hidden()
