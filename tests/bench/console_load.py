#!/usr/bin/env python3
"""Measure the console with viewers of one run: requests to the API server, memory, and the age of a step on arrival.

    .venv/bin/python tests/bench/console_load.py [--viewers 20] [--seconds 60] [--write]

The API server is a substitute on loopback, in this process with the viewers; the console is a separate process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import page
from report import table

from tests.unit.certificates import self_signed
from tests.unit.console.consoles import LOG, RUN, Events, objects
from tests.unit.console.fake import FakeApi, User, listening

WARM_UP = 15.0
STEP_SECONDS = 0.5
HEAD = ("viewers", "tokens", "requests/s", "most in a second", "memory of the console", "age of a step, median (p95)")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.asynccontextmanager
async def console(folder: Path, api: str) -> AsyncIterator[tuple[int, int]]:
    """Start a console in a separate process; yield its port and its process id."""
    port = free_port()
    settings = {"API": api, "API_CA": folder / "ca.crt", "TLS": folder, "PORT": port, "TENSORBOARD_PORT": free_port()}
    environment = {**os.environ, **{f"CONSOLE_{name}": str(value) for name, value in settings.items()}}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "trainyard.console", env=environment)
    try:
        yield port, process.pid
    finally:
        process.terminate()
        await process.wait()


def resident(pid: int) -> float:
    """Return the peak memory of a process, MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


async def view(url: str, token: str, trusted: ssl.SSLContext, ages: list[float], begin: float, run: str = RUN) -> None:
    """Log in, load the page, and watch, as a browser does.

    :param ages: receives the age of each step on arrival, seconds; none from before `begin`, seconds since the epoch.
    """
    connector = aiohttp.TCPConnector(ssl=trusted)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=aiohttp.ClientTimeout(None)) as http:
        form, own = {"token": token}, {"Origin": url}
        async with http.post(f"{url}/login", data=form, headers=own, allow_redirects=False) as got:
            http.headers["Cookie"] = f"__Host-console={got.cookies['__Host-console'].value}"
        async with http.get(f"{url}{run.removeprefix('/api/v1')}") as got:
            got.raise_for_status()
        async with http.get(f"{url}{run}/events") as got:
            events = Events(got)
            while True:
                _, _, said = await events.next("line")
                if time.time() > begin:
                    ages.append(time.time() - said["time"])


async def watch_all(url: str, token: str, authority: Path, run: str, number: int) -> None:
    """Let this number of viewers watch a run of a real console until the task is cancelled."""
    trusted = ssl.create_default_context(cafile=authority)
    async with asyncio.TaskGroup() as group:
        for _ in range(number):
            group.create_task(view(url, token, trusted, [], 0.0, f"/api/v1{run}"))
            await asyncio.sleep(0.2)


async def train(api: FakeApi) -> None:
    """Emit a step periodically."""
    step = 0
    while True:
        step += 1
        said = {
            "event": "step",
            "step": step,
            "steps_total": 10**6,
            "loss": 1 / step,
            "steps_per_second": 2.0,
            "time": time.time(),
        }
        api.say(LOG, f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}.{step:09d}Z {json.dumps(said)}")
        await asyncio.sleep(STEP_SECONDS)


async def measure(viewers: int, tokens: int, seconds: float) -> list[str]:
    api = FakeApi(objects(), {f"t{number}": User(f"user{number}") for number in range(tokens)})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, key = self_signed()
        for file, text in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", certificate)):
            (folder / file).write_text(text)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        trusted = ssl.create_default_context(cafile=folder / "ca.crt")
        async with listening(api.handle, serving) as url, console(folder, url) as (port, pid):
            await asyncio.sleep(3)
            ages: list[float] = []
            begin, where = time.time() + WARM_UP, f"https://127.0.0.1:{port}"
            tasks = [asyncio.create_task(train(api))]
            for number in range(viewers):
                tasks.append(asyncio.create_task(view(where, f"t{number % tokens}", trusted, ages, begin)))
                await asyncio.sleep(0.2)
            await asyncio.sleep(begin - time.time())
            counts = []
            for _ in range(int(seconds)):
                before = len(api.asked)
                await asyncio.sleep(1)
                counts.append(len(api.asked) - before)
            memory = resident(pid)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            for each in ended:
                if isinstance(each, BaseException) and not isinstance(each, asyncio.CancelledError):
                    raise each
    age = f"{statistics.median(ages):.2f} s ({statistics.quantiles(ages, n=20)[-1]:.2f} s)"
    return [str(viewers), str(tokens), f"{statistics.mean(counts):.1f}", str(max(counts)), f"{memory:.0f} MiB", age]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    given = parser.parse_args()
    rows = [asyncio.run(measure(given.viewers, tokens, given.seconds)) for tokens in (1, given.viewers)]
    print(f"load {os.getloadavg()[0]:.1f}\n")
    if given.write:
        page.write("console", HEAD, rows)
    else:
        print(table(HEAD, rows))


if __name__ == "__main__":
    main()
