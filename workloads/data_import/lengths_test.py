"""Tests of invented lengths, and of bodies without an end: the import is refused, and its volume keeps its reserve."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from data_import import download
from data_import.download import BLOCK, Download
from engine.errors import InputError
from engine.run.metrics import MetricsLog

ROOM = 3 * BLOCK
ENDLESS = 64 * BLOCK
"""Bytes after which the server ends anyway, so that a failing test terminates."""


class Handler(BaseHTTPRequestHandler):
    headers_given: dict[str, str]
    size = b""
    """Chunk size as written by the server, if the body is chunked."""
    left = 0

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in self.headers_given.items():
            self.send_header(name, value)
        self.end_headers()
        part = b"x" * (BLOCK // 4)
        try:
            for place in range(0, self.left, len(part)):
                begins = self.size and (self.size[:1] != b"-" or not place)
                self.wfile.write(self.size + b"\r\n" + part if begins else part)
                if self.size and self.size[:1] != b"-":
                    self.wfile.write(b"\r\n")
            if self.size and self.size[:1] != b"-":
                self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            pass

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def served() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("Own", (Handler,), {})
    one = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{one.server_address[1]}/set", handler
    one.shutdown()
    one.server_close()


@pytest.fixture(autouse=True)
def small_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a volume with some room and a reserve of 50 bytes."""

    def usage(_: Path) -> Any:
        used = sum(path.stat().st_size for path in tmp_path.iterdir())
        return type("Usage", (), {"free": ROOM + 50 - used, "total": 1000})

    monkeypatch.setattr(download.shutil, "disk_usage", usage)


def fetch(url: str, folder: Path, sha256: str = "0" * 64) -> Path:
    return Download(url, sha256, folder, MetricsLog(stream=io.StringIO()), lambda _: None).finish()


@pytest.mark.parametrize("length", ["abc", "-5", str(10**30), "+5", "5, 5", "0x5", "\u0665", "1" * 5000, "1e3", ""])
def test_a_length_that_is_none_is_refused(served: tuple[str, type[Handler]], tmp_path: Path, length: str) -> None:
    url, handler = served
    handler.headers_given = {"Content-Length": length.encode().decode("latin-1")}
    with pytest.raises(InputError, match="which is not a file size") as refused:
        fetch(url, tmp_path)
    assert len(refused.value.message) < 200 and refused.value.message.isascii()
    assert list(tmp_path.iterdir()) == []


def test_a_length_that_leaves_no_reserve_is_refused(served: tuple[str, type[Handler]], tmp_path: Path) -> None:
    url, handler = served
    handler.headers_given = {"Content-Length": str(ROOM + 1)}
    with pytest.raises(InputError, match=f"needs {ROOM + 1} bytes more, and .* has {ROOM} beyond its reserve of 50"):
        fetch(url, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, b""),
        ({"Transfer-Encoding": "chunked"}, b"%x" % (BLOCK // 4)),
        ({"Transfer-Encoding": "chunked", "Content-Length": "5"}, b"%x" % (BLOCK // 4)),
        ({"Transfer-Encoding": "chunked"}, b"-1"),
        ({"Transfer-Encoding": "chunked"}, b"-5"),
    ],
)
def test_a_body_without_an_end_leaves_the_reserve(
    served: tuple[str, type[Handler]], tmp_path: Path, given: dict[str, str], size: bytes
) -> None:
    url, handler = served
    handler.headers_given, handler.size, handler.left = given, size, ENDLESS
    with pytest.raises(InputError, match="Make room on its volume") as refused:
        fetch(url, tmp_path)
    assert int(refused.value.message.split(" needs ")[1].split(" ")[0]) < 2 * BLOCK
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [{}, {"Transfer-Encoding": "chunked"}])
def test_a_body_without_a_length_that_fits_is_fetched(
    served: tuple[str, type[Handler]], tmp_path: Path, given: dict[str, str]
) -> None:
    url, handler = served
    handler.headers_given, handler.size, handler.left = given, b"%x" % (BLOCK // 4) if given else b"", ROOM
    assert fetch(url, tmp_path, hashlib.sha256(b"x" * ROOM).hexdigest()).stat().st_size == ROOM
