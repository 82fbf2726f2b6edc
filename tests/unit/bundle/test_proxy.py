"""Downloads of the bundle behind the site's proxy: it is asked for vendors, and not for exceptions."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.unit.bundle.vendors import Vendor
from trainyard.bundle import apt
from trainyard.bundle.vendor import http as fetch
from trainyard.core import proxy
from trainyard.core.command import run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a proxy that closes each connection, and the first lines that it received."""
    for name in proxy.NAMES:
        for each in (name, name.upper()):
            monkeypatch.setenv(each, "")
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    seen.append(connection.recv(4096).splitlines()[0])

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://user:secret@127.0.0.1:{server.getsockname()[1]}", seen


def test_vendors_by_the_proxy_and_exceptions_without(vendor: Vendor, asked: tuple[str, list[bytes]]) -> None:
    url, seen = asked
    vendor.files["/file"] = b"content"
    proxy.use({"HTTPS_PROXY": url, "NO_PROXY": "127.0.0.1,.svc"})
    assert fetch.read(f"{vendor.url}/file") == b"content" and seen == []
    assert not fetch.answers("https://vendor.example/file")
    assert seen[0].startswith(b"CONNECT vendor.example:443 ")


def test_a_private_apt_has_the_proxy_in_no_argument(
    tmp_path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, list[bytes]]
) -> None:
    said = []
    monkeypatch.setattr(
        apt, "run", lambda argv, **options: said.append((argv, options["env"])) or run(["true"], timeout=9)
    )
    proxy.use({"HTTPS_PROXY": asked[0], "NO_PROXY": "a,b"})
    apt.PrivateApt(tmp_path, [], is_strict=True)
    ((argv, environment),) = said
    assert not [each for each in argv if "secret" in str(each)]
    assert (environment["https_proxy"], environment["no_proxy"]) == (asked[0], "a,b")
