"""Pages of reprovisioning in a real browser, from the disk: readable wide and narrow, light and dark, and inert."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.unit.reprovision.reports import HOSTILE, report
from trainyard.drift.pages import html, index

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A state directory with one run."""
    folder = tmp_path / "runs" / report()["id"]
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(html(report()), encoding="utf-8")
    (tmp_path / "index.html").write_text(index([report()]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages(browser: Browser, site: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, asked, said = context.new_page(), [], []
    page.on("request", lambda each: asked.append(each.url))
    page.on("console", lambda each: said.append(each.text))
    page.on("dialog", lambda each: said.append(f"dialog {each.message}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link").first.click()
    page.get_by_role("heading", name="Reprovisioning", level=1).wait_for()
    assert "<script>alert(1)</script>" in page.inner_text("body") and HOSTILE[:8] == "<script>"
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing leads out of the window"
    text, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (text == "rgb(255, 255, 255)") == (scheme == "dark") and ground in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
    names = page.locator("thead").first
    assert names.is_visible() == (width > 700), "a narrow window names each value beside it"
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("heading", name="the last runs").wait_for()
    assert all(each.startswith("file://") for each in asked) and said == []
    context.close()
