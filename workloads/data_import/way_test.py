"""Tests of permitted and forbidden connections of a download, with servers on loopback."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from data_import import download
from data_import.download import Download
from engine.errors import InputError
from engine.run.metrics import MetricsLog

NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


class Leading(BaseHTTPRequestHandler):
    """A server that redirects /from to `target`, and answers other requests with an empty body."""

    target = ""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302 if self.path == "/from" else 200)
        if self.path == "/from":
            self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Leading.asked = []
    one = ThreadingHTTPServer(("127.0.0.1", 0), Leading)
    threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{one.server_address[1]}"
    one.shutdown()
    one.server_close()


def fetch(url: str, folder: Path) -> Path:
    return Download(url, NOTHING, folder, MetricsLog(stream=io.StringIO()), lambda _: None).finish()


def test_a_redirect_to_the_same_host_is_followed(server: str, tmp_path: Path) -> None:
    Leading.target = "/to"
    assert fetch(f"{server}/from", tmp_path).exists()
    assert Leading.asked == ["/from", "/to"]


@pytest.mark.parametrize(
    "target",
    ["http://localhost:1/x", "http://169.254.169.254/latest/meta-data", "ftp://127.0.0.1/x", "http://user@other/x"],
)
def test_a_redirect_to_another_host_without_tls_is_refused(server: str, tmp_path: Path, target: str) -> None:
    Leading.target = target
    with pytest.raises(InputError, match="another host without TLS"):
        fetch(f"{server}/from", tmp_path)


def test_a_redirect_away_from_tls_is_refused() -> None:
    request = download.urllib.request.Request("https://example.org/x")
    with pytest.raises(InputError):
        download._Redirects().redirect_request(request, None, 302, "Found", {}, "http://example.org/x")
    kept = download._Redirects().redirect_request(request, None, 302, "Found", {}, "https://other.org/x")
    assert kept and kept.full_url == "https://other.org/x"


def resolving(*addresses: str) -> Callable[..., Any]:
    return lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]


@pytest.mark.parametrize(
    "addresses",
    [
        ("169.254.169.254",),
        ("127.0.0.1", "169.254.169.254"),
        ("fe80::1%eth0",),
        ("fd00:ec2::254",),
        ("::ffff:169.254.169.254",),
        ("100.100.100.200",),
        ("168.63.129.16",),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_that_leads_to_metadata_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...], scheme: str
) -> None:
    monkeypatch.setattr(download.socket, "getaddrinfo", resolving(*addresses))
    reached: list[Any] = []
    monkeypatch.setattr(download.socket, "create_connection", lambda *given: reached.append(given))
    with pytest.raises(InputError, match="no import reaches"):
        fetch(f"{scheme}://example.org/x", tmp_path)
    assert not reached


def test_the_address_that_was_looked_at_is_connected_to(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second resolution of the name could return another address (DNS rebinding)."""
    real, asked = download.socket.getaddrinfo, list[str]()

    def getaddrinfo(host: str, *given: Any, **named: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1" if host == "example.org" else host, *given, **named)

    monkeypatch.setattr(download.socket, "getaddrinfo", getaddrinfo)
    assert fetch(server.replace("127.0.0.1", "example.org"), tmp_path).exists()
    assert asked.count("example.org") == 1
