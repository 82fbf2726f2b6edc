"""Whatever a program prints, its log is kept whole, every event is found, and a person may look at it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.kube.log_server import Printing, serving, stamp
from tests.unit.training.output import STEPS, program
from tests.unit.training.test_run import container, pod
from trainyard.console.feed import ChiefLog
from trainyard.console.shares import LINE_BYTES
from trainyard.kube.api import Api, KubeError
from trainyard.kube.pod_log import Lines, Position, readable
from trainyard.trainings.kept_logs import KeptLogs
from trainyard.trainings.log_events import outcome, summary
from trainyard.trainings.model import Success
from trainyard.trainings.pod_logs import PodLogs
from trainyard.trainings.run_logs import Place, follow, read

NAME = "wide-worker-0-0-abcde"
PATH = f"/api/v1/namespaces/trainings/pods/{NAME}"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/wide"
RUNS = {"phase": "Running", **container({"running": {}})}
ENDED = {"phase": "Succeeded", **container({"terminated": {"exitCode": 0}})}
LINES = program()
WHOLE = b"".join(line for _, line in LINES)
ASKED = Success(metric="accuracy", at_least=0.5)
KINDS = [*["step"] * STEPS, "evaluate", "end"]


def printing(status: dict[str, Any] = ENDED) -> Printing:
    one = pod(NAME, "worker", status)
    one["metadata"]["labels"]["trainyard.dev/run"] = "wide"
    server = Printing(PATH, one, LINES)
    server.objects[SETS] = {"kind": "JobSet", "metadata": {"name": "wide", "namespace": "trainings"}}
    server.objects[SETS]["status"] = {"conditions": [{"type": "Completed", "status": "True"}]}
    return server


def kept(folder: Path) -> bytes:
    return (folder / "logs" / "trainings-wide" / "20261121T120000Z-0001" / f"{NAME}.log").read_bytes()


def pod_logs(api: Api, folder: Path) -> PodLogs:
    return PodLogs(api, KeptLogs(str(folder / "logs"), "trainings-wide", "20261121T120000Z-0001"))


def test_the_follower_loses_nothing(tmp_path: Path) -> None:
    server, chosen = printing(), random.Random(1)
    with serving(server, tmp_path) as api:
        logs, there = pod_logs(api, tmp_path), {**server.objects[PATH], "status": RUNS}
        for server.printed in sorted(chosen.sample(range(len(LINES) - 1), 30)):
            server.breaks = [chosen.randrange(3_000_000)] if server.printed % 3 else []
            logs.read(there)
        server.breaks, server.printed = [], len(LINES)
        logs.read(there)
        assert not logs.is_whole(there)
        there["status"] = ENDED
        for _ in range(2):
            assert logs.read(there)
    said = logs.said(there)
    assert (kept(tmp_path) == WHOLE, [each["event"] for each in said]) == (True, KINDS)
    assert [each["step"] for each in said[:STEPS]] == list(range(1, STEPS + 1))
    assert logs.is_whole(there)
    assert outcome(said, ASKED) == ("passed", "")
    assert (summary(said, {})["accuracy"], summary(said, {})["result"]) == (0.97, "passed")
    assert PodLogs(api, logs.kept).said(there) == said, "from the kept log, too"


def test_trainyard_logs_loses_nothing(tmp_path: Path) -> None:
    server, place = printing(), Place("wide", "trainings", "worker-0")
    with serving(server, tmp_path) as api:
        found = list(read(api, place, str(tmp_path)))
        # Each connection begins with the second of the last line: where it breaks off is so far behind that.
        server.breaks = [0, 1_000_000, 1_100_000, 2_700_000, 2_900_000, 3_000_000]
        followed = list(follow(api, place, print, lambda _: None))
        assert not server.breaks and len(server.asked) == 8
    for lines in (found, followed):
        assert b"".join(each.text + b"\n" * each.ended for each in lines) == WHOLE
        shown = "".join(readable(each.text) for each in lines)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", shown)
        assert "938/938 [====] - 1s - loss: 0.3" in shown and "ETA" not in shown


def pieces(data: bytes, chosen: random.Random) -> Iterator[bytes]:
    begin = 0
    while begin < len(data):
        size = chosen.choice((1, 30, 1_000, 70_000))
        yield data[begin : begin + size]
        begin += size


def test_the_console_loses_nothing() -> None:
    server, chosen, said = printing(), random.Random(2), list[dict[str, Any]]()
    server.breaks = [10, 200_000, 1_000_000, 2_800_000, 2_900_000]

    class Client:
        @asynccontextmanager
        async def stream(self, _: str, path: str, query: dict[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
            data = server.answer({key: value for key, value in query.items() if key != "tailLines"})
            broken = bool(server.breaks)

            async def chunks() -> AsyncIterator[bytes]:
                for piece in pieces(data[: server.breaks.pop(0)] if broken else data, chosen):
                    yield piece
                if broken:
                    raise KubeError("The connection broke off.", status=0)

            yield chunks()

    log = ChiefLog(PATH, "main", said.append)
    client: Any = Client()
    for _ in range(5):
        with pytest.raises(KubeError, match="broke off"):
            asyncio.run(log.follow(client, "token", lambda: None))
    asyncio.run(log.follow(client, "token", lambda: None))
    assert [each["event"] for each in said] == KINDS
    lines, shown = Lines(LINE_BYTES, last=True), Position()
    found = [each for piece in pieces(server.answer({"timestamps": "1"}), chosen) for each in lines.feed(piece)]
    found = [each for each in [*found, *lines.rest()] if shown.is_new(each)]
    assert [each.text for each in found] == [line.removesuffix(b"\n")[-LINE_BYTES:] for _, line in LINES]


def test_a_refusal_is_no_empty_log(tmp_path: Path) -> None:
    server, place = printing(), Place("wide", "trainings", "worker-0")
    with serving(server, tmp_path) as api:
        server.refused = 400, 'parsing time "203/300" as "2006-01-02T15:04:05Z07:00": cannot parse'
        logs = pod_logs(api, tmp_path)
        readings: list[Callable[[], Any]] = [
            lambda: logs.read(server.objects[PATH]),
            lambda: list(read(api, place, "")),
            lambda: list(follow(api, place, print, print)),
            lambda: api.log("trainings", NAME),
        ]
        for reading in readings:
            with pytest.raises(KubeError, match="cannot parse"):
                reading()
        assert not logs.is_whole(server.objects[PATH])
        server.refused = 400, f'container "main" in pod "{NAME}" is waiting to start: ContainerCreating'
        assert logs.read(server.objects[PATH])
        assert (api.log("trainings", NAME), list(read(api, place, ""))) == ("", [])


def test_a_container_that_ends_within_a_line_and_the_next_one(tmp_path: Path) -> None:
    server = printing()
    server.lines = [(1, b"one\n"), (2, b"tw"), (3 * 10**9, b"three\n")]
    with serving(server, tmp_path) as api:
        logs = pod_logs(api, tmp_path)
        for server.printed, server.objects[PATH]["status"] in ((2, RUNS), (2, RUNS), (2, ENDED)):
            logs.read(server.objects[PATH])
            assert kept(tmp_path) == b"one\ntw"
        server.lines, server.printed = [(3 * 10**9, b"three\n")], 1
        logs.read(server.objects[PATH])
    assert kept(tmp_path) == b"one\ntw\nthree\n"
    assert stamp(1) == "2026-11-21T12:00:00.000000001Z"
