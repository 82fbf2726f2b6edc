"""Every page in a real browser: wide and narrow, light and dark, for everybody, and with nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Running, Window
from tests.browser.packages import package
from tests.browser.world import CONSOLE, SPACE

PAGES = {
    "runs": "/",
    "run": f"/runs/{SPACE}/mnist-ps?log=mnist-ps-chief-0-0-ax9k2&tail=50",
    "waiting": f"/runs/{SPACE}/wide",
    "ended": f"/runs/{SPACE}/bound",
    "nodes": "/nodes",
    "receipts": "/receipts",
    "cluster": "/cluster",
    "objects": "/cluster/core/v1/pods",
    "object": f"/cluster/core/v1/configmaps/{CONSOLE}/settings",
    "about": "/about",
    "login": "/login",
    "nothing": f"/runs/{SPACE}/mnist",
}
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
SERIOUS = ("serious", "critical")
FIRST_PAGE_BYTES = 150_000

pytestmark = pytest.mark.browser


def axe(page: Page) -> list[str]:
    """Findings about who can use the page that axe-core calls serious.

    In a world of its own, by the protocol of the browser's own tools: the page's policy forbids scripts from elsewhere.
    """
    source = (package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    tools = page.context.new_cdp_session(page)
    frame = tools.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
    world = tools.send("Page.createIsolatedWorld", {"frameId": frame})["executionContextId"]

    def evaluate(expression: str) -> Any:
        wanted = {"expression": expression, "contextId": world, "awaitPromise": True, "returnByValue": True}
        found = tools.send("Runtime.evaluate", wanted)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    evaluate(source + "; 0")
    findings = evaluate("axe.run(document).then((found) => found.violations)")
    tools.detach()
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in findings
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_everybody(name: str, console: Running, window: Callable[..., Window]) -> None:
    found = window(console, logged_in=name != "login")
    for width, scheme in LOOKS:
        found.page.set_viewport_size({"width": width, "height": 800})
        found.page.emulate_media(color_scheme=scheme)
        found.seen.errors.clear()
        page = found.goto(PAGES[name])
        page.locator("h1").wait_for()
        assert axe(page) == [], f"{width} {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "a part of the page is wider than it"
        assert page.evaluate("window.reports") == []
        # The browser itself says that an answer was 404 or 401, which is what these pages are.
        errors = [each for each in found.seen.errors if name not in ("nothing", "login") or "status of 40" not in each]
        assert errors == [] and found.seen.foreign == []


def test_the_first_page_is_small(console: Running, window: Callable[..., Window]) -> None:
    found = window(console)
    sizes: dict[str, int] = {}
    found.page.on("response", lambda answer: sizes.update({answer.url: len(answer.body())}))
    found.goto("/")
    found.page.wait_for_load_state("networkidle")
    assert 0 < sum(sizes.values()) < FIRST_PAGE_BYTES, sizes
    assert len(sizes) >= 3 and not [url for url in sizes if "uPlot" in url], "only a page with curves needs the library"


def test_a_page_with_curves_is_small_too(console: Running, window: Callable[..., Window]) -> None:
    found = window(console)
    sizes: dict[str, int] = {}

    def add(answer: Any) -> None:
        if not answer.url.endswith("/events"):
            sizes[answer.url] = len(answer.body())

    found.page.on("response", add)
    found.goto(PAGES["run"])
    found.page.locator(".uplot").first.wait_for()
    assert 0 < sum(sizes.values()) < FIRST_PAGE_BYTES, sizes


@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("login", "nothing")])
def test_a_page_is_readable_without_scripts(name: str, console: Running, window: Callable[..., Window]) -> None:
    page = window(console, java_script_enabled=False).goto(PAGES[name])
    text = page.locator("main").inner_text()
    wanted = {
        "runs": ["mnist-ps", "1,240 of 2,000", "cnn", "about 7 s left", "alice stopped it"],
        "run": ["1,240 of 2,000", "bound 95.0 %", "chief-0", "batch_size", '"event": "evaluate"', "Started container"],
        "waiting": ["Insufficient nvidia.com/gpu", "worker-1"],
        "ended": ["accuracy 0.941 is below the bound 0.95"],
        "nodes": ["worker2", "unhealthy", "wide worker-0", "v1.36.1"],
        "receipts": ["gpus_healthy", "6 min 52 s"],
        "cluster": ["ConfigMap", "JobSet"],
        "objects": ["mnist-ps-chief-0-0-ax9k2"],
        "object": ["kind: ConfigMap", "second line"],
        "about": ["v1.36.1"],
    }[name]
    assert [each for each in wanted if each not in text] == []
    if name == "run":
        assert page.locator(".plot svg path").count() >= 4


def test_another_certificate_is_refused(
    start: Callable[..., Running], browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Running(tmp_path_factory.mktemp("other"))
    other.start()
    try:
        page = browser.new_page()
        with pytest.raises(Exception, match="ERR_CERT_AUTHORITY_INVALID"):
            page.goto(other.url)
        page.close()
    finally:
        other.stop()
