"""A console on loopback with real TLS, and Debian's browser before it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.chromium import chromium, missing
from tests.browser.cluster_api import SceneApi
from tests.browser.packages import package
from tests.browser.scene import scene
from tests.unit.certificates import self_signed
from tests.unit.console import consoles
from tests.unit.console.consoles import Stand

START_SECONDS = 60
WAIT_SECONDS = float(os.environ.get("BROWSER_WAIT_SECONDS", "60"))
"""For a page to do what is expected of it; a machine that does much else at once needs more."""
CSP_REPORTS = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (each) => window.reports.push(each.violatedDirective));
"""


class Running:
    """A console in a thread of its own.

    :param hostile: as in `scene`.
    :param board: handler of all TensorBoards.
    """

    def __init__(self, folder: Path, *, hostile: bool = False, board: Any = None) -> None:
        self.api = SceneApi(scene(hostile=hostile))
        self._folder, self._board = folder, board
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self.stand: Stand

    async def _serve(self) -> None:
        async with consoles.standing(self._folder, self.api, self._board) as self.stand:
            self._ready.set()
            await self._ended.wait()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(START_SECONDS), "the console does not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(START_SECONDS)

    def becomes(self, change: Callable[[], object]) -> None:
        """Something becomes of the cluster, in the thread in which it is."""
        self._loop.call_soon_threadsafe(change)

    def says(self, path: str, *lines: Any) -> None:
        """A pod of the cluster says something now."""
        self.becomes(lambda: self.api.says(path, *lines))

    @property
    def url(self) -> str:
        """By the name that the certificate has."""
        return self.stand.url.replace("127.0.0.1", "localhost")


@dataclass
class Seen:
    """What a browser has met while a page was open."""

    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class Window:
    """A browser with a login."""

    context: BrowserContext
    page: Page
    seen: Seen
    url: str

    def goto(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page


@pytest.fixture(scope="session")
def certificate() -> tuple[str, str]:
    """Of the console and its API server, and its key, PEM; it is its own authority."""
    return self_signed()


@pytest.fixture(scope="session")
def browser(certificate: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's browser, which trusts this certificate because it is in its store, and no other one."""
    assert not missing(), f"apt-get install {' '.join(missing())}"
    file = tmp_path_factory.mktemp("authority") / "console.crt"
    file.write_text(certificate[0])
    with chromium(tmp_path_factory.mktemp("home"), file) as found:
        yield found


@pytest.fixture(scope="module")
def start(certificate: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Running]]:
    """Starts consoles, each with a cluster of its own."""
    running: list[Running] = []

    def begin(*, hostile: bool = False, board: Any = None) -> Running:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(consoles, "self_signed", lambda: certificate)
            running.append(Running(tmp_path_factory.mktemp("console"), hostile=hostile, board=board))
            running[-1].start()
        return running[-1]

    yield begin
    for each in running:
        each.stop()


@pytest.fixture(scope="module")
def console(start: Callable[..., Running]) -> Running:
    return start()


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[..., Window]]:
    """Opens windows with a login; what they meet on their way is kept."""
    contexts: list[BrowserContext] = []

    def opened(running: Running, token: str = "operator", *, logged_in: bool = True, **options: Any) -> Window:
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(1000 * WAIT_SECONDS)
        expect.set_options(timeout=1000 * WAIT_SECONDS)
        context.add_init_script(CSP_REPORTS)
        # The image of the console has it from the bundle.
        for name in ("uPlot.iife.min.js", "uPlot.min.css"):
            file = package("uplot") / "dist" / name
            context.route(f"**/static/uplot/{name}", lambda route, _, file=file: route.fulfill(path=file))
        page, seen = context.new_page(), Seen()
        watch(page, seen, running.url)
        found = Window(context, page, seen, running.url)
        if logged_in:
            found.goto("/login").get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("heading", name="Runs", level=1).wait_for()
        return found

    yield opened
    for each in contexts:
        each.close()


def watch(page: Page, seen: Seen, url: str) -> None:
    """Note what a page asks other servers for, and what the browser complains of."""

    def request(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(url).netloc:
            seen.foreign.append(address)

    page.on("request", lambda each: request(each.url))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda said: seen.errors.append(said.text) if said.type in ("error", "warning") else None)
