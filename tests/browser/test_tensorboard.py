"""TensorBoards in a real browser: what one needs works without an origin, and a hostile one reads nothing of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from playwright.sync_api import Page, expect

from tests.browser.conftest import Running, Window
from tests.browser.world import SPACE

pytestmark = pytest.mark.browser

ATTACKS = {
    "its own data": ("./data/runs", "same-origin"),
    "another claim": (f"/tensorboard/{SPACE}/other/data/runs", "include"),
    "a pass for another claim": (f"/tensorboard/{SPACE}/other/", "include"),
    "its own pass for another claim": ("../other/data/runs", "include"),
    "the console": ("CONSOLE/api/v1/session", "include"),
    "the console without a login": ("CONSOLE/", "omit"),
}
PAGE = f"""<!doctype html><html><head><meta charset="utf-8"><title>Board</title></head><body><script>
const found = {{}};
const read = async (name, address, credentials) => {{
  try {{
    const answer = await fetch(address, {{ credentials, headers: {{ "X-TensorBoard-Feature-Flags": "{{}}" }} }});
    found[name] = answer.ok ? await answer.text() : "refused";
  }} catch {{ found[name] = "refused"; }}
}};
const frame = (address) => new Promise((done) => {{
  const made = document.createElement("iframe");
  made.onload = () => {{ try {{ done(made.contentDocument.body.textContent); }} catch {{ done("refused"); }} }};
  made.src = address;
  document.body.append(made);
  setTimeout(() => done("refused"), 3000);
}});
(async () => {{
  const own = new URLSearchParams(location.search).get("console");
  for (const [name, [address, credentials]] of Object.entries({json.dumps(ATTACKS)}))
    await read(name, address.replace("CONSOLE", own), credentials);
  found.frame = await frame("/tensorboard/{SPACE}/other/");
  found.origin = self.origin;
  found.cookie = document.cookie;
  localStorage.setItem("a", "b");
  found.storage = localStorage.getItem("a") + localStorage.getItem("c");
  const post = await fetch("./data/post", {{ method: "POST", body: new FormData() }});
  found.post = await post.text();
  const worker = new Worker("./worker.js");
  found.worker = await new Promise((done) => {{ worker.onmessage = (said) => done(said.data); }});
  const part = document.createElement("iframe");
  part.src = "./part.html";
  window.onmessage = (said) => {{
    found.part = said.data;
    document.body.dataset.found = JSON.stringify(found);
    document.body.append("Done");
  }};
  document.body.append(part);
}})();
</script></body></html>"""
PART = "<!doctype html><head></head><script>parent.postMessage(localStorage.getItem('a') + self.origin, '*')</script>"


async def hostile(request: web.Request) -> web.Response:
    """The TensorBoard of `own` attacks; that of `other` has what it would like to read."""
    if "/other/" in request.path:
        return web.Response(text="SECRET")
    name = request.path.rpartition("/")[2]
    kind, text = {
        "": ("text/html", PAGE),
        "part.html": ("text/html", PART),
        "worker.js": ("text/javascript", "postMessage('works')"),
    }.get(name, ("text/plain", f"data {request.method}"))
    return web.Response(text=text, content_type=kind)


@pytest.fixture(scope="module")
def running(start: Callable[..., Running]) -> Running:
    return start(board=hostile)


def open_board(opened: Window, running: Running) -> Page:
    """Follow a link of a page, as a person does."""
    board = running.stand.tensorboard.replace("127.0.0.1", "localhost")
    link = f"{board}/tensorboard/{SPACE}/own/?console={opened.url}"
    opened.page.evaluate(
        "(link) => { const made = document.createElement('a'); made.href = link; made.textContent = 'Board';"
        " made.rel = 'noreferrer'; document.body.append(made); }",
        link,
    )
    opened.page.get_by_role("link", name="Board", exact=True).click()
    expect(opened.page.get_by_text("Done")).to_be_visible()
    return opened.page


def found(page: Page) -> Any:
    return page.evaluate("JSON.parse(document.body.dataset.found)")


def test_a_hostile_board_reads_its_own_and_nothing_of_others(window: Callable[..., Window], running: Running) -> None:
    page = open_board(window(running, "viewer"), running)
    said = found(page)
    assert {name: said[name] for name in ATTACKS} == {
        name: "data GET" if name == "its own data" else "refused" for name in ATTACKS
    }
    assert (said["origin"], said["cookie"], said["frame"]) == ("null", "", "refused")


def test_what_a_board_needs_works_without_an_origin(window: Callable[..., Window], running: Running) -> None:
    page = open_board(window(running, "viewer"), running)
    said = found(page)
    assert (said["storage"], said["post"], said["worker"]) == ("bnull", "data POST", "works")
    assert said["part"] == "nullnull", "a frame has no origin and a storage of its own"
    page.reload()
    expect(page.get_by_text("Done")).to_be_visible()
    assert "/pass/" in page.url
