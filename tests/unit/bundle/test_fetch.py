"""Downloads: resumed, bounded, believed by their hash only; files and archives."""

from __future__ import annotations

import base64
import http.server
import io
import socket
import tarfile
import threading
import time

import pytest

from tests.unit.bundle.vendors import Vendor, flipped, sha256
from trainyard.bundle.origin import Download
from trainyard.bundle.vendor import http as fetch
from trainyard.bundle.vendor.upstream import download
from trainyard.core.errors import TrainyardError

CONTENT = bytes(range(256)) * 64


@pytest.fixture
def vendor(vendor) -> Vendor:
    vendor.files["/file"] = CONTENT
    return vendor


def archive(names: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as stream:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            stream.addfile(info, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize(
    ("there", "ranges"),
    [
        (None, [""]),
        (CONTENT[:100], ["bytes=100-"]),
        # What lies there from before may be damaged: then everything once more.
        (b"x" * 100, ["bytes=100-", ""]),
    ],
)
def test_a_download_goes_on_where_it_stopped(vendor, waited, tmp_path, there: bytes | None, ranges: list[str]) -> None:
    if there is not None:
        (tmp_path / "partial").write_bytes(there)
    fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert [wanted for _, _, _, wanted in vendor.seen] == ranges
    assert not (tmp_path / "partial").exists()


def test_a_broken_connection_is_taken_up_again(vendor, waited, tmp_path) -> None:
    vendor.broken["/file"] = 1000
    fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert [wanted for _, _, _, wanted in vendor.seen] == ["", "bytes=1000-"]


@pytest.fixture
def waited(monkeypatch) -> list[float]:
    """Seconds of every pause, none of which is made."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(seconds) if seconds else None)
    return pauses


@pytest.mark.parametrize("ask", [fetch.read, fetch.sha256_of])
def test_a_busy_server_is_given_the_time_that_it_asks_for(vendor, waited, ask) -> None:
    vendor.busy["/file"] = 2
    assert ask(f"{vendor.url}/file") in (CONTENT, sha256(CONTENT))
    assert waited == [fetch.PAUSE_LIMIT, fetch.PAUSE_LIMIT], "it asks for an hour"
    assert len(vendor.seen) == 3


def test_a_server_that_stays_busy_is_named(vendor, waited, tmp_path) -> None:
    vendor.busy["/file"] = 100
    with pytest.raises(fetch.HttpError, match="answered 429"):
        fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    assert len(vendor.seen) == len(waited) + 1 == fetch.REPEATS + 1


@pytest.mark.parametrize("ask", [fetch.read, fetch.sha256_of])
def test_half_an_answer_is_none(vendor, ask) -> None:
    vendor.broken["/file"] = 1000
    with pytest.raises(fetch.HttpError, match="1000 bytes read"):
        ask(f"{vendor.url}/file")


def test_an_answer_that_never_ends_is_ended(vendor, monkeypatch) -> None:
    monkeypatch.setattr(fetch, "DOWNLOAD_TIMEOUT", -1)
    with pytest.raises(fetch.HttpError, match="did not arrive within"):
        fetch.read(f"{vendor.url}/file")


def test_https_does_not_lead_to_http(vendor) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as plain:
        threading.Thread(target=plain.serve_forever, args=(0.01,), daemon=True).start()
        vendor.redirects["/moved"] = f"http://127.0.0.1:{plain.server_address[1]}/"
        with pytest.raises(fetch.HttpError, match="which is not https"):
            fetch.read(f"{vendor.url}/moved")
        plain.shutdown()


def test_the_proxy_of_the_environment_is_asked_with_its_login(vendor, monkeypatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://someone:secret@127.0.0.1:{proxy.getsockname()[1]}")
        said: list[bytes] = []

        def answer() -> None:
            with proxy.accept()[0] as connection:
                said.append(connection.recv(4096))

        threading.Thread(target=answer, daemon=True).start()
        assert not fetch.answers("https://vendor.example/file")
    assert said[0].startswith(b"CONNECT vendor.example:443")
    assert b"authorization: Basic " + base64.b64encode(b"someone:secret") in said[0]


def test_another_hash_leaves_nothing(vendor, tmp_path) -> None:
    vendor.files["/file"] = flipped(CONTENT)
    with pytest.raises(TrainyardError) as failure:
        fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    facts = {"url": f"{vendor.url}/file", "expected": sha256(CONTENT), "found": sha256(flipped(CONTENT))}
    assert failure.value.facts == facts
    assert all(fact in str(failure.value) for fact in facts.values())
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "partial").exists()


def test_a_large_answer_is_not_read(vendor) -> None:
    with pytest.raises(fetch.HttpError, match="more than 100 bytes"):
        fetch.read(f"{vendor.url}/file", limit=100)


@pytest.mark.parametrize(("path", "token", "expected"), [("/file", "", True), ("/v2/", "t", True), ("/no", "", False)])
def test_whether_an_origin_answers(vendor, path: str, token: str, expected: bool) -> None:
    vendor.token = token
    assert fetch.answers(f"{vendor.url}{path}") is expected


def test_a_closed_port_does_not_answer() -> None:
    assert not fetch.answers("https://127.0.0.1:9/")


def test_a_server_that_another_authority_signed_is_not_believed(vendor, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(fetch.HttpError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch.read(f"{vendor.url}/file")


def test_members_of_an_archive(vendor, tmp_path) -> None:
    packed = archive({"./bin/tool": b"tool", "LICENSE": b"text"})
    vendor.files["/tool.tgz"] = packed
    wanted = Download(f"{vendor.url}/tool.tgz", sha256(packed), (("a/tool", "bin/tool"), ("LICENSE", "LICENSE")))
    download(wanted, tmp_path / "out", tmp_path / "partial")
    assert (tmp_path / "out/a/tool").read_bytes() == b"tool"
    with pytest.raises(TrainyardError, match="has no file bin/other"):
        other = Download(wanted.url, wanted.sha256, (("tool", "bin/other"),))
        download(other, tmp_path / "out", tmp_path / "partial")
