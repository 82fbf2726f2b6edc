"""Downloads that are larger than they should be, with vendors on this machine."""

from __future__ import annotations

import contextlib
import http.server
import threading

import pytest

from tests.unit.bundle.vendors import Vendor, sha256
from trainyard.bundle.vendor import http as fetch

CONTENT = bytes(range(256)) * 64


@pytest.fixture
def vendor(vendor) -> Vendor:
    vendor.files["/file"] = CONTENT
    return vendor


@pytest.fixture(autouse=True)
def no_waits(monkeypatch) -> None:
    monkeypatch.setattr(fetch.time, "sleep", lambda _: None)


class Endless(http.server.BaseHTTPRequestHandler):
    """Sends without end, and says of no size."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65536)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("endless", [False, True])
def test_a_file_that_is_too_large_leaves_nothing(vendor, tmp_path, monkeypatch, endless: bool) -> None:
    monkeypatch.setattr(fetch, "FILE_LIMIT", 1 << 20)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/file" if endless else f"{vendor.url}/file"
        limit = 1 << 20 if endless else len(CONTENT) - 1
        with pytest.raises(fetch.TooLargeError, match=f"more than {limit} bytes") as failure:
            fetch.download(url, tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial", limit=limit)
        server.shutdown()
    assert failure.value.remedy == fetch.ALTERED
    assert [each.name for each in tmp_path.iterdir()] == ["vendor.pem"]
    if not endless:
        assert [method for method, *_ in vendor.seen] == ["GET"]


def test_what_is_there_counts(vendor, tmp_path) -> None:
    (tmp_path / "partial").write_bytes(CONTENT[:-10])
    limit = len(CONTENT)
    fetch.download(f"{vendor.url}/file", tmp_path / "a", sha256(CONTENT), partial=tmp_path / "partial", limit=limit)
    (tmp_path / "partial").write_bytes(CONTENT[:-10])
    with pytest.raises(fetch.TooLargeError, match=f"more than {limit - 1} bytes"):
        fetch.download(
            f"{vendor.url}/file", tmp_path / "b", sha256(CONTENT), partial=tmp_path / "partial", limit=limit - 1
        )
