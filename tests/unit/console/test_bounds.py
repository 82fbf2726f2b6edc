"""What the console holds in memory for others is bounded: answers, and connections that say nothing."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.unit.console.consoles import LOG, SPACE, Stand, run
from trainyard.console import user_api as calls
from trainyard.console import web_server
from trainyard.kube.api import KubeError

MAP = f"{SPACE}/configmaps/large"


@pytest.mark.parametrize(("bound", "said"), [("ANSWER_BYTES", "larger than"), ("ALL_BYTES", "reads too much")])
def test_an_answer_that_is_too_large(bound: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, bound, 20_000)

    async def scenario(stand: Stand) -> None:
        client = stand.console.client
        stand.api.objects[MAP] = {"data": {"a": "x" * 19_000}}
        for _ in range(3):
            # What was read before is no burden on it.
            assert (await client.call("viewer", "GET", MAP))[0] == 200
        stand.api.objects[MAP] = {"data": {"a": "x" * 21_000}}
        with pytest.raises(KubeError, match=said) as caught:
            await client.get("viewer", MAP)
        assert caught.value.status == 0
        stand.api.objects[MAP] = {"data": {"a": "x" * 19_000}}
        assert (await client.call("viewer", "GET", MAP))[0] == 200

    run(scenario, tmp_path)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_connection_that_says_nothing_ends(sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "IDLE_SECONDS", 0.2)

    async def scenario(stand: Stand) -> None:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        port = int(stand.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        writer.write(sent)
        # To its end, which would not come.
        assert (b"200 OK" in await reader.read()) == bool(sent)
        writer.close()

    run(scenario, tmp_path)


def test_of_a_log_with_long_lines_the_last_ones_are_read(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, *["z" * calls.LOG_BYTES] * 12, "last")
        text = await stand.console.client.get("viewer", LOG, {"tailLines": "200"}, text=True)
        assert text.endswith("z\nlast\n") and len(text) < 4 * calls.LOG_BYTES

    run(scenario, tmp_path)
