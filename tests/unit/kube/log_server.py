"""An API server over HTTP on loopback whose one pod prints what a test says, in the kubelet's way of giving logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api
from trainyard.kube.connection import connect

BEGIN = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()) * 10**9
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: a, user: {{}}}}]
"""


def stamp(nanoseconds: int) -> str:
    """A time since `BEGIN` as the kubelet writes it."""
    second, rest = divmod(BEGIN + nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


class Printing(ApiServer):
    """An API server with one pod.

    :param lines: (nanoseconds, bytes) of what the pod prints; the last may be without its end.
    """

    def __init__(self, path: str, pod: Mapping[str, Any], lines: Sequence[tuple[int, bytes]]) -> None:
        super().__init__({path: pod})
        self.log = f"{path}/log"
        self.lines = lines
        self.printed = len(lines)
        """How many of the lines are there by now."""
        self.breaks: list[int] = []
        """Bytes after which the next connections break off."""
        self.refused: tuple[int, str] | None = None
        """Status and message that the log is answered with."""
        self.asked: list[dict[str, str]] = []

    def answer(self, query: Mapping[str, str]) -> bytes:
        """The log as a kubelet gives it: from a whole second on, or its last lines."""
        found = list(self.lines[: self.printed])
        if "tailLines" in query:
            found = found[-int(query["tailLines"]) :]
        if "sinceTime" in query:
            since = int(datetime.fromisoformat(query["sinceTime"]).timestamp()) * 10**9 - BEGIN
            found = [each for each in found if each[0] >= since]
        stamped = "timestamps" in query
        return b"".join((f"{stamp(at)} ".encode() if stamped else b"") + line for at, line in found)


@contextmanager
def serving(server: Printing, folder: Path) -> Iterator[Api]:
    """The server behind the connection that the project makes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, query = urlsplit(self.path).path, parse_qsl(urlsplit(self.path).query)
            if path == server.log and server.refused is None:
                server.asked.append(dict(query))
                self._log(server.answer(dict(query)))
                return
            if path == server.log and server.refused:
                status, text = server.refused[0], json.dumps({"message": server.refused[1]})
            else:
                status, text = server("GET", path, query, None, "")
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def _log(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            whole = not server.breaks
            data = data if whole else data[: server.breaks.pop(0)]
            for begin in range(0, len(data), 50_000):
                piece = data[begin : begin + 50_000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if whole:
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        Thread(target=http.serve_forever, daemon=True).start()
        try:
            (folder / "kubeconfig").write_text(KUBECONFIG.format(port=http.server_address[1]))
            yield connect(str(folder / "kubeconfig"))
        finally:
            http.shutdown()
