"""What a schedule fetches with, and that nobody else on its machine reads the password."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.unit.reprovision.origins import Origin, bare
from trainyard.schedule.repository import Wanted, opened

PASSWORD = "canary/of@an address"
QUOTED = "canary%2Fof%40an%20address"


class Server(SimpleHTTPRequestHandler):
    """Files for whoever has the password; it notes the arguments of all processes while it is asked."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.seen.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        given = self.headers.get("Authorization", "")
        if given == "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode():
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="site"')
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_password_of_an_address_is_no_argument(tmp_path: Path, server: str) -> None:
    origin = Origin(tmp_path)
    subprocess.run(["git", "-C", str(origin.path), "update-server-info"], check=True)
    address = f"http://me:{QUOTED}@{server}/origin/.git"
    taken = bare(tmp_path).take(Wanted(address, "main", origin.signers))
    assert taken.commit == origin.git("rev-parse", "HEAD")
    fetching = [argv for argv in Server.seen if server in argv]
    assert fetching and not [argv for argv in Server.seen if "canary" in argv]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://me:secret@git.example:8443/x.git", "https://git.example:8443/x.git"),
        ("https://:secret@git.example/x.git", "https://git.example/x.git"),
        ("https://git.example/x.git", ""),
        ("https://me@git.example/x.git", ""),
        ("ssh://git@git.example/x.git", ""),
        ("git@git.example:x.git", ""),
        ("https://[broken", ""),
        ("/srv/x.git", ""),
    ],
)
def test_addresses(url: str, address: str) -> None:
    found, env = opened(url)
    assert found == (address or url) and bool(env) is bool(address)
    assert "secret" not in found + str({name: value for name, value in env.items() if name.startswith("GIT_")})
