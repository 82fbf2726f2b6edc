#!/usr/bin/env python3
"""Prove the notebook as a user sees it: created, opened in a browser with only its token, a training cell, stopped.

    .venv/bin/python tests/bench/notebook.py [--inventory inventories/lab --lab trainyard]

It needs the prerequisites of docs/tasks/trainings.md, kubectl, and Debian's browser: apt-get install chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import inputs
from mishaps import until
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import expect, sync_playwright
from stand import NAMESPACE, Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError

RUN = "notebook"
PORT = 8888
CELL = inputs.ROOT / "tests" / "bench" / "notebook" / "cell.py"
SAID = "weight 3.0 in /logs/notebook"
"""Printed by the cell at its end."""
FORWARD_SECONDS, PAGE_SECONDS, CELL_SECONDS = 30, 120, 180
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
LEFT = (
    ("apps/v1", "Deployment", RUN),
    ("v1", "Service", RUN),
    ("v1", "Secret", f"{RUN}-token"),
    ("networking.k8s.io/v1", "NetworkPolicy", RUN),
)
"""Objects that must be gone after a stop that deletes."""


def made(stand: Stand) -> str:
    """Create it, twice; return its token, which must not be shown.

    :raises BenchError: the second call changed something, or the token is not stored as required.
    """
    _, first = stand.train(workload=RUN)
    _, second = stand.train(workload=RUN)
    if re.search(r"changed=[1-9]", second):
        raise BenchError("The second call of the notebook has changed something.")
    file = stand.state / "tokens" / f"{NAMESPACE}-{RUN}"
    token = file.read_text(encoding="utf-8").strip()
    if file.stat().st_mode & 0o777 != 0o600 or token in first + second:
        raise BenchError(f"The token was shown, or others may read {file}.")
    if not re.search(rf"port-forward\s+service/{RUN}", first):
        raise BenchError("The call does not say how the notebook is reached.")
    return token


@contextmanager
def forwarded(stand: Stand) -> Iterator[str]:
    """Return the address of the notebook on this machine, as docs/tasks/trainings.md describes it."""
    config = f"--kubeconfig={stand.state / 'kubeconfig'}"
    # Use any free port, because a fixed one may be in use here.
    forward = ["kubectl", config, f"--namespace={NAMESPACE}", "port-forward", f"service/{RUN}", f":{PORT}"]
    log = stand.folder / "port-forward.log"
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(forward, stdout=stream, stderr=subprocess.STDOUT)
        try:
            what = f"the forward of the port (log: {log})"
            found = until(
                what, lambda: re.search(r"127\.0\.0\.1:\d+", log.read_text(encoding="utf-8")), FORWARD_SECONDS
            )
            yield f"http://{found[0]}"
        finally:
            process.terminate()
            process.wait(timeout=FORWARD_SECONDS)


def require_token(url: str) -> None:
    """Send a request without the token.

    :raises BenchError: it is not refused.
    """
    try:
        urllib.request.urlopen(f"{url}/api/contents", timeout=PAGE_SECONDS).close()
    except urllib.error.HTTPError as error:
        if error.code == 403:
            return
        raise BenchError(f"Without the token {url} answers {error.code}.") from error
    raise BenchError(f"{url} can be read without the token.")


def in_browser(url: str, token: str, code: str, said: str) -> str:
    """Log in, create a notebook, run a cell, and return its output.

    :param said: expected end of the output.
    :raises BenchError: a step fails, or the page sends a request to another server.
    """
    foreign: set[str] = set()

    def look(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(url).netloc:
            foreign.add(parts.netloc)

    with sync_playwright() as playwright:
        # Root cannot use the browser's own sandbox.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        with playwright.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox) as browser:
            page = browser.new_page()
            page.set_default_timeout(1000 * PAGE_SECONDS)
            page.on("request", lambda request: look(request.url))
            try:
                # Reset the workspace, because the folder may have the state of the previous run.
                page.goto(f"{url}/lab?reset")
                page.locator("#password_input").fill(token)
                page.locator("#login_submit").click()
                page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click()
                # A cell started before its kernel is ready does not run at all.
                expect(page.get_by_text("| Idle")).to_be_visible(timeout=1000 * CELL_SECONDS)
                cell = page.locator(".jp-Notebook .jp-CodeCell").first
                cell.locator(".cm-content").click()
                page.keyboard.insert_text(code)
                page.keyboard.press("Shift+Enter")
                output = cell.locator(".jp-OutputArea-output").last
                expect(output).to_contain_text(said, timeout=1000 * CELL_SECONDS)
                text = output.inner_text().strip()
            except (BrowserError, AssertionError) as error:
                shown = page.locator("body").inner_text()[-1000:]
                raise BenchError(f"In the browser: {error}\nThe page shows: {shown}") from error
    if foreign:
        raise BenchError(f"The page asks other servers: {', '.join(sorted(foreign))}.")
    return text


def prove(stand: Stand) -> None:
    # As docs/tasks/trainings.md describes for a site with a mirror.
    stand.play("playbooks/supply.yml", "-e", json.dumps({"bundle_artefacts_also": ["image_notebook"]}), limit=1800)
    token = made(stand)
    with forwarded(stand) as url:
        require_token(url)
        print(f"notebook: {in_browser(url, token, CELL.read_text(encoding='utf-8'), SAID)}", flush=True)
    stand.forget(RUN)
    left = [f"{kind} {name}" for version, kind, name in LEFT if stand.api.get(version, kind, name, NAMESPACE)]
    if left or (stand.state / "tokens" / f"{NAMESPACE}-{RUN}").exists():
        raise BenchError(f"After its end there is still: {', '.join(left) or 'its token'}.")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    options = parser.parse_args(argv)
    for program, package in (("chromium", "chromium"), ("kubectl", "kubernetes-client")):
        if not shutil.which(program):
            print(f"notebook: {program} is missing: apt-get install {package}", file=sys.stderr)
            return 1
    try:
        with standing(options) as stand:
            prove(stand)
    except (BenchError, KubeError) as error:
        print(f"notebook: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
