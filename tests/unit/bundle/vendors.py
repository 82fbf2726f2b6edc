"""Vendors on this machine: servers of the shape of a package repository and of a registry, over TLS, and their keys."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.certificates import pair_file, tls_server


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def flipped(content: bytes) -> bytes:
    """The same bytes but for one bit in the middle."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@dataclass
class Vendor:
    """A server of what stands in `files`.

    :param files: path with its query -> content.
    :param token: when set, paths below /v2/ need it as bearer token, which /token hands out.
    :param broken: path -> bytes after which the connection breaks, once.
    :param busy: path -> answers 429 before the first other one.
    :param seen: requests as (method, path, Authorization, Range).
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    token: str = ""
    broken: dict[str, int] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, str, str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://{self.address}"


def _media_type(path: str, content: bytes) -> str:
    """What a registry says of a manifest that was pushed to it."""
    found = re.search(rb'"mediaType": "([^"]+)"', content) if "/manifests/" in path else None
    return found[1].decode() if found else "application/octet-stream"


def _handler(vendor: Vendor) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorization, wanted = self.headers.get("Authorization", ""), self.headers.get("Range", "")
            vendor.seen.append((self.command, self.path, authorization, wanted))
            path = self.path.partition("?")[0]
            if vendor.busy.get(path):
                vendor.busy[path] -= 1
                return self.answer(429, b"", {"Retry-After": "3600"})
            if vendor.token and path == "/token":
                return self.answer(200, json.dumps({"token": vendor.token}).encode())
            if vendor.token and path.startswith("/v2/") and authorization != f"Bearer {vendor.token}":
                challenge = f'Bearer realm="{vendor.url}/token",service="vendor"'
                return self.answer(401, b"", {"WWW-Authenticate": challenge})
            if path in vendor.redirects:
                return self.answer(307, b"", {"Location": vendor.redirects[path]})
            if path == "/v2/":
                return self.answer(200, b"{}")
            if path not in vendor.files:
                return self.answer(404, b"no such file")
            content = vendor.files[path]
            if wanted:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                ranged = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
                return self.answer(206, content[start:], ranged)
            return self.answer(200, content, {"Content-Type": _media_type(path, content)})

        do_HEAD = do_GET

        def answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content[: vendor.broken.pop(self.path, len(content))])

        def log_message(self, *arguments: object) -> None:
            return

    return Handler


@contextmanager
def vendor_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """A running vendor, whose certificate this process trusts."""
    pair = pair_file(folder / "vendor.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(pair))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    vendor = Vendor()
    with tls_server(_handler(vendor), pair) as url:
        vendor.address = url.removeprefix("https://")
        yield vendor


@dataclass(frozen=True)
class Signer:
    """An OpenPGP key in a home of its own."""

    home: Path

    def __call__(self, *arguments: str, stdin: bytes = b"") -> bytes:
        argv = ["gpg", "--homedir", str(self.home), "--batch", "--pinentry-mode=loopback", "--passphrase=", *arguments]
        return subprocess.run(argv, input=stdin, capture_output=True, check=True, timeout=60).stdout

    @property
    def fingerprint(self) -> str:
        listed = self("--with-colons", "--list-keys").decode()
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))


def make_signer(home: Path, name: str, expires: str = "never", *options: str) -> Signer:
    """A new key; call `stop_agent` at the end."""
    home.mkdir(mode=0o700)
    signer = Signer(home)
    signer(*options, "--quick-gen-key", name, "ed25519", "sign", expires)
    return signer


def stop_agent(signer: Signer) -> None:
    subprocess.run(["gpgconf", "--homedir", str(signer.home), "--kill", "all"], check=False, timeout=30)
