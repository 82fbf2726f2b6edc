"""What tests of feeds share: lines of a chief, and browsers that watch."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from tests.unit.console.consoles import LIMIT, RUN, Stand


def step(number: int, **fields: Any) -> str:
    said = {"event": "step", "step": number, "loss": 0.5, "time": 1.0, **fields}
    return f"2026-11-21T12:00:00.{number:09d}Z {json.dumps(said)}"


def watching(stand: Stand, **headers: str) -> Any:
    return stand.browser.get(f"{stand.url}{RUN}/events", headers=headers, timeout=aiohttp.ClientTimeout(total=None))


async def until(true: Any) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.02)
