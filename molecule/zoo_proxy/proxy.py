"""Forward requests to vendors' names to the server on this machine, as a company's proxy does to the internet.

    proxy.py PORT LOG

Writes a line with method and host for each request to LOG. A request without the login `site:secret` gets status 407.
"""

from __future__ import annotations

import base64
import select
import socket
import socketserver
import sys
from pathlib import Path

LOGIN = "Basic " + base64.b64encode(b"site:secret").decode()
TIMEOUT = 60.0


class Handler(socketserver.StreamRequestHandler):
    """One connection: CONNECT for https, a request with a whole URL for http."""

    timeout = TIMEOUT

    def handle(self) -> None:
        first = self.rfile.readline().decode("latin-1")
        headers = list(iter(self.rfile.readline, b"\r\n"))
        method, target, _ = first.split(" ", 2)
        place = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        host, _, port = place.partition(":")
        with Path(sys.argv[2]).open("a", encoding="utf-8") as log:
            log.write(f"{method} {host}\n")
        if not any(line.decode("latin-1").strip() == f"Proxy-Authorization: {LOGIN}" for line in headers):
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", int(port or 80)), TIMEOUT) as server:
            if method == "CONNECT":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                path = "/" + target.removeprefix("http://").partition("/")[2]
                kept = [line for line in headers if not line.lower().startswith((b"proxy-", b"connection:"))]
                server.sendall(
                    b"".join([f"{method} {path} HTTP/1.1\r\n".encode(), *kept, b"Connection: close\r\n\r\n"])
                )
            self._relay(server)

    def _relay(self, server: socket.socket) -> None:
        sides = {self.connection: server, server: self.connection}
        while True:
            ready, _, _ = select.select(list(sides), [], [], TIMEOUT)
            for each in ready:
                if not (data := each.recv(65536)):
                    return
                sides[each].sendall(data)
            if not ready:
                return


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    Server(("", int(sys.argv[1])), Handler).serve_forever()
