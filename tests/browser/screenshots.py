#!/usr/bin/env python3
"""Take new pictures for README.md and docs/tasks/console.md from the console of a real cluster: `make screenshots`.

    .venv/bin/python tests/browser/screenshots.py --address https://localhost:30443 --token-file FILE --authority ca.crt

Each is 1280 x 800 pixels, in UTC and English. The run that is shown is the first of those that go on, once it has done
half of its steps; `--run` names another one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Page

from tests.browser.chromium import chromium, missing
from tests.browser.pictures import DIGEST, HEIGHT, LARGEST, PICTURES, WIDTH, digest, wanted
from tests.browser.png import with_palette

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS, HALF_SECONDS, SETTLE_MS = 60, 600, 800


def first(page: Page, part: str) -> str:
    """Path of the first run in a part of the list of runs; empty where there is none."""
    link = page.locator(f"[data-live={part}] .lead a").first
    return (link.get_attribute("href") or "") if link.count() else ""


def half_done(page: Page) -> None:
    """Wait until half of the steps are done, so that there is a curve to be seen."""
    end = time.monotonic() + HALF_SECONDS
    bar = page.locator("[data-value=step]")
    while bar.count() and time.monotonic() < end:
        done, total = (float(bar.get_attribute(name) or 0) for name in ("value", "max"))
        if done >= total / 2:
            return
        page.wait_for_timeout(500)
        page.reload()


def with_log(page: Page) -> None:
    page.get_by_role("button", name="Show").click()
    page.get_by_role("log").wait_for()
    page.locator("#log").scroll_into_view_if_needed()


def scenes(page: Page, run: str) -> dict[str, tuple[str, Callable[[Page], object] | None]]:
    """Name of a picture -> the path that it shows, and what is done there first."""
    page.goto("/")
    watched, pending = run or first(page, "active") or first(page, "over"), first(page, "queue")
    page.goto("/receipts")
    receipt = page.locator(".lead a").first.get_attribute("href") if page.locator(".lead a").count() else None
    found: dict[str, tuple[str, Callable[[Page], object] | None]] = {"runs": ("/", None), "nodes": ("/nodes", None)}
    if watched:
        found |= {"run": (watched, half_done), "log": (watched, with_log)}
    if pending:
        found["pending"] = (pending, None)
    if receipt:
        found |= {"receipts": ("/receipts", None), "receipt": (receipt, None)}
    page.goto("/cluster/core/v1/nodes")
    node = page.locator(".lead a").first.get_attribute("href")
    return found | {
        "cluster": ("/cluster", None),
        "objects": (f"/cluster/core/v1/pods?namespace={watched.split('/')[2] if watched else 'trainings'}", None),
        "object": (node or "/cluster", None),
        "about": ("/about", None),
    }


def take(page: Page, name: str, folder: Path) -> None:
    """
    :raises ValueError: the picture is too large.
    """
    page.wait_for_timeout(SETTLE_MS)
    file = folder / f"{name}.png"
    picture = with_palette(page.screenshot(animations="disabled", caret="hide"))
    if len(picture) > LARGEST:
        raise ValueError(f"{file} has {len(picture)} bytes, and may have {LARGEST}")
    file.write_bytes(picture)
    print(f"{name}: {len(picture) // 1000} KB", flush=True)


def tensorboard(page: Page, folder: Path) -> bool:
    """The picture of TensorBoard; False where the page that is open leads to none."""
    link = page.get_by_role("link", name="TensorBoard")
    if not link.count():
        return False
    page.goto(link.get_attribute("href") or "")
    page.locator("canvas, svg.line-chart, card-view").first.wait_for(timeout=1000 * WAIT_SECONDS)
    page.wait_for_timeout(4 * SETTLE_MS)
    take(page, "tensorboard", folder)
    return True


def take_all(options: argparse.Namespace, home: Path) -> set[str]:
    """Take all that the site has to show; their names."""
    token = options.token_file.read_text(encoding="utf-8").strip()
    options.out.mkdir(parents=True, exist_ok=True)
    with chromium(home, options.authority) as browser:
        context = browser.new_context(
            base_url=options.address,
            viewport={"width": WIDTH, "height": HEIGHT},
            locale="en-US",
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.set_default_timeout(1000 * WAIT_SECONDS)
        page.goto("/login")
        take(page, "login", options.out)
        taken = {"login"}
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="Runs", level=1).wait_for()
        for name, (path, prepare) in scenes(page, options.run).items():
            page.goto(path)
            if prepare:
                prepare(page)
            take(page, name, options.out)
            taken.add(name)
            if name == "run":
                page.emulate_media(color_scheme="dark")
                take(page, "run-dark", options.out)
                page.emulate_media(color_scheme="light")
                taken |= {"run-dark", *(["tensorboard"] if tensorboard(page, options.out) else [])}
    return taken


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--address", required=True, help="of the console, by a name that its certificate has")
    parser.add_argument("--token-file", required=True, type=Path)
    parser.add_argument("--authority", required=True, type=Path, help="certificate that the console's is signed by")
    parser.add_argument("--run", default="", help="path of a run, such as /runs/trainings/mnist-ps")
    parser.add_argument("--out", type=Path, default=PICTURES)
    options = parser.parse_args(argv)
    if missing():
        print(f"screenshots: apt-get install {' '.join(missing())}", file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory() as home:
            lacking = wanted() - take_all(options, Path(home))
    except (BrowserError, OSError, ValueError) as error:
        print(f"screenshots: {re.sub(r'[^ -~]', '', str(error))}", file=sys.stderr)
        return 1
    if lacking:
        # One that is left out would be older than the hash beside it says.
        what = "a run that goes on and has a TensorBoard, one that waits, and a receipt"
        print(f"screenshots: not taken: {', '.join(sorted(lacking))}; the site needs {what}", file=sys.stderr)
        return 1
    if options.out.resolve() == PICTURES:
        DIGEST.write_text(f"{digest()}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
