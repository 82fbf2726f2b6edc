"""Tests of imports from an HTTP server on loopback: complete, interrupted, wrong, concurrent, and on a full volume."""

from __future__ import annotations

import errno
import hashlib
import http.client
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from data_import import download, main
from data_import.download import Download
from engine.run.metrics import MetricsLog

FILES = {"train/a.bin": b"a" * 70_000, "train/b.bin": bytes(range(256)) * 300, "labels.txt": b"0 1 2\n"}


def archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name, content in FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


class Server(ThreadingHTTPServer):
    """A server of one content; `cuts` are byte counts after which the next answers break off."""

    content = b""
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cuts: list[int] = []
        self.statuses: list[int] = []
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/set.tar.gz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.asked.append(wanted)
        if self.server.statuses:
            self.send_error(self.server.statuses.pop(0))
            return
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if begin and begin >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    one.content = archive()
    thread = threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield one
    one.shutdown()
    one.server_close()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    monkeypatch.setattr(Download.__init__, "__defaults__", (lambda _: None,))


def call(server: Server, folder: Path, sha256: str = "", **options: str) -> tuple[int, list[dict[str, Any]]]:
    out = io.StringIO()
    sha256 = sha256 or hashlib.sha256(server.content).hexdigest()
    flags = {"url": server.url, "sha256": sha256, "destination": str(folder), **options}
    code = main.run([f"--{name}={value}" for name, value in flags.items()], MetricsLog(stream=out))
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def test_import_then_nothing_to_do(server: Server, tmp_path: Path) -> None:
    code, events = call(server, tmp_path / "mnist")
    assert code == 0
    assert contents(tmp_path / "mnist") == FILES
    assert events[-1]["result"] == "imported"
    assert (events[-1]["files"], events[-1]["bytes"]) == (3, sum(map(len, FILES.values())))
    code, events = call(server, tmp_path / "mnist")
    assert (code, events[-1]["result"], len(server.asked)) == (0, "already there", 1)
    assert not (tmp_path / ".import-mnist" / "download").exists()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_off_is_taken_up_where_it_was(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.cuts, server.ranges = [100, 50], ranges
    code, events = call(server, tmp_path / "mnist")
    assert code == 0
    assert contents(tmp_path / "mnist") == FILES
    assert server.asked[:2] == ["", "bytes=100-"]
    assert [event["event"] for event in events] == ["retry", "retry", "end"]


def test_a_killed_import_goes_on(server: Server, tmp_path: Path) -> None:
    work = tmp_path / ".import-mnist"
    work.mkdir()
    (work / "sha256").write_text(hashlib.sha256(server.content).hexdigest())
    (work / "download").write_bytes(server.content[:120])
    (work / "unpacked").mkdir()
    (work / "unpacked" / "half").write_text("x")
    assert call(server, tmp_path / "mnist")[0] == 0
    assert server.asked == ["bytes=120-"]
    assert contents(tmp_path / "mnist") == FILES
    assert not (tmp_path / "mnist" / "half").exists()


def test_a_download_that_is_whole_already(server: Server, tmp_path: Path) -> None:
    (tmp_path / "download").write_bytes(server.content)
    sha256 = hashlib.sha256(server.content).hexdigest()
    assert Download(server.url, sha256, tmp_path, MetricsLog(stream=io.StringIO())).finish().exists()


def test_half_a_download_of_another_set_is_not_gone_on_with(server: Server, tmp_path: Path) -> None:
    work = tmp_path / ".import-mnist"
    work.mkdir()
    (work / "sha256").write_text("0" * 64)
    (work / "download").write_bytes(b"another")
    assert call(server, tmp_path / "mnist")[0] == 0
    assert server.asked == [""]


def test_statuses_that_pass_are_tried_again(server: Server, tmp_path: Path) -> None:
    server.statuses = [503, 429]
    assert call(server, tmp_path / "mnist")[0] == 0


def test_a_server_that_never_answers_is_worth_another_try(server: Server, tmp_path: Path) -> None:
    server.statuses = [503] * download.ATTEMPTS
    with pytest.raises(OSError, match="does not answer: Service Unavailable"):
        call(server, tmp_path / "mnist")
    assert len(server.asked) == download.ATTEMPTS


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sha256": "ab" * 32}, "not " + "ab" * 32),
        ({"sha256": "short"}, "is not 64 hexadecimal digits"),
        ({"url": "ftp://127.0.0.1/x"}, "neither http nor https"),
        ({"url": "file:///etc/passwd"}, "neither http nor https"),
    ],
)
def test_refused(server: Server, tmp_path: Path, change: dict[str, str], says: str) -> None:
    code, events = call(server, tmp_path / "mnist", **change)
    assert code == 2
    assert says in events[-1]["message"]
    assert not (tmp_path / "mnist").exists()
    assert not (tmp_path / ".import-mnist" / "download").exists()


def test_a_refused_address_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    server.statuses = [404]
    code, events = call(server, tmp_path / "mnist")
    assert (code, len(server.asked)) == (2, 1)
    assert "is refused: 404 Not Found" in events[-1]["message"]


@pytest.mark.parametrize("there", [{}, {"url": "http://other/", "sha256": "0" * 64}])
def test_a_folder_that_holds_something_else_is_left_alone(
    server: Server, tmp_path: Path, there: dict[str, str]
) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / ".import.json").write_text(json.dumps(there))
    code, events = call(server, folder)
    assert code == 2
    assert f"{folder} exists and holds {there.get('url', 'other data')}" in events[-1]["message"]
    assert server.asked == []


def test_no_room(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10, "total": 0}))
    code, events = call(server, tmp_path / "mnist")
    assert code == 2
    assert f"needs {len(server.content)} bytes more, and {tmp_path}/.import-mnist has 10" in events[-1]["message"]


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EPROTO])
def test_a_network_that_fails_is_no_full_disk(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    read, failures = http.client.HTTPResponse.read, [OSError(number, "the network")]

    def broken(answer: http.client.HTTPResponse, size: int) -> bytes:
        if answer.status == 206 and failures:
            raise failures.pop()
        return read(answer, size)

    monkeypatch.setattr(http.client.HTTPResponse, "read", broken)
    server.cuts = [100]
    code, events = call(server, tmp_path / "mnist")
    assert (code, events[1]["event"], events[1]["bytes"]) == (0, "retry", 100)
    assert "the network" in events[1]["why"]
    assert contents(tmp_path / "mnist") == FILES


def test_a_disk_that_gets_full_is_no_failing_network(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".import-mnist").mkdir()
    (tmp_path / ".import-mnist/download").symlink_to("/dev/full")
    (tmp_path / ".import-mnist/sha256").write_text(hashlib.sha256(server.content).hexdigest())
    code, events = call(server, tmp_path / "mnist")
    assert (code, len(server.asked)) == (2, 1)
    assert events[-1]["message"].endswith("cannot be written (No space left on device).")


def test_two_at_once(server: Server, tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(call(server, tmp_path / "mnist")[1][-1]["result"])) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == ["already there", "imported"]
    assert len(server.asked) == 1
