"""The proxy on a port of this machine, before a moto of its own."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.server import ThreadedMotoServer

from tests.aws.proxy import Lost, Proxy


@contextmanager
def aws(port: int = 0) -> Iterator[tuple[Proxy, str]]:
    """A moto and the proxy before it, for as long as the block runs; the proxy, and the address of moto itself."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    moto.start()
    host, its_port = moto.get_host_and_port()
    try:
        with serving(Proxy((host, its_port)), port) as proxy:
            yield proxy, f"http://{host}:{its_port}"
    finally:
        moto.stop()


@contextmanager
def serving(proxy: Proxy, port: int = 0) -> Iterator[Proxy]:
    """The proxy under `proxy.url`, for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet: the second of two would wait for the client's delayed acknowledgement.
        wbufsize = -1

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                answer = proxy.handle(self.command, self.path, headers, body)
            except Lost:
                self.close_connection = True
                return
            except Exception as error:
                proxy.problems.append(f"{self.command} {self.path}: {error!r}")
                raise
            self.send_response(answer.status)
            for name in ("content-type", "x-amzn-errortype"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("x-amzn-requestid", f"request-{len(proxy.calls)}")
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_DELETE = _any

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A killed client breaks its connection; everything else is in `problems`."""

    with Server(("127.0.0.1", port or free_port()), Handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            server.shutdown()


def free_port() -> int:
    """One below those that Linux gives to connections: between this and its use no program comes by it."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(15_000, 30_000))) as probe:
            return int(probe.getsockname()[1])
