"""A download that resumes after an interruption and is verified by its hash.

Connections to a server, except to cloud metadata addresses, and redirects, except away from TLS or to another host.

A public name may resolve to an internal address. Each address is therefore checked after its resolution, and the
connection uses the checked address.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import InputError, unwritable
from engine.run.metrics import MetricsLog

METADATA = [
    ipaddress.ip_network(each)
    for each in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32")
]
"""The same as in src/trainyard/trainings/data_import.py, whose policy also keeps pods and Services out."""


def opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https URLs within these limits."""
    return urllib.request.build_opener(_Redirects, _Plain, _Secure)


def refuse(address: str) -> None:
    """Check that an address may be reached.

    :raises InputError: it is a link-local address or an address of cloud metadata.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    if any(found in each for each in METADATA):
        raise InputError(f"The server's name resolves to {address}, which no import reaches.", "Set another server.")


def connect(place: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
    """Connect as `socket.create_connection` does, but check each address first.

    :raises InputError: the name resolves to an address that no import reaches.
    :raises OSError: no address answers.
    """
    failure: OSError | None = None
    # All are checked first, because a name with both a good and a bad address is suspicious.
    found = socket.getaddrinfo(*place, type=socket.SOCK_STREAM)
    for *_, address in found:
        refuse(str(address[0]))
    for *_, address in found:
        try:
            return socket.create_connection((str(address[0]), int(address[1])), timeout, source)
        except OSError as error:
            failure = error
    raise failure or OSError(f"{place[0]} has no address")


class _PlainConnection(http.client.HTTPConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_PlainConnection, req)


class _Secure(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req, context=self._context)  # type: ignore[attr-defined]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows redirects to https, and from http to the same host by http."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(str(rest[-1]))
        same = (before.scheme, before.hostname) == (after.scheme, after.hostname)
        if after.scheme != "https" and not (after.scheme == "http" and same):
            raise InputError(
                f"{req.full_url} redirects to {after.scheme}://{after.netloc}, which is another host without TLS.",
                "If that is intended, set the address that it redirects to.",
            )
        return super().redirect_request(req, *rest)


ATTEMPTS = 6
"""Consecutive attempts without a byte, 1, 2, 4, ... s apart; a minute in total."""
SILENCE_SECONDS = 30.0
BLOCK = 1 << 20
REPORT_SECONDS = 5.0
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed (RFC 9110; 425 is RFC 8470, 429 RFC 6585)."""
RESERVE = 1 << 30
"""Bytes of the volume that stay free for its other users; a twentieth of a volume below 20 GiB."""
LENGTH = re.compile(r"[0-9]{1,18}")
"""A length of a body in bytes (RFC 9110, section 8.6), below the maximum file size."""


class Download:
    """One file, kept as `download` in a folder until it is complete.

    :param url: http or https.
    :param sha256: hash of the complete file, 64 lower-case hexadecimal digits.
    :param work: folder that is kept between calls.
    :raises InputError: the URL or the hash is invalid.
    """

    def __init__(
        self, url: str, sha256: str, work: Path, log: MetricsLog, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise InputError(f"sha256 {sha256!r} is not 64 hexadecimal digits.", "Set the hash of the file.")
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"The URL {url} is neither http nor https.", "Set the address of a file.")
        self._opener = opener()
        self._url, self._sha256, self._work, self._log, self._sleep = url, sha256, work, log, sleep
        self.path = work / "download"

    def finish(self) -> Path:
        """Download the missing part and return the file.

        :raises InputError: the server refuses or sends an invalid length, the hash differs, or the volume is full.
        :raises StalledError: the volume does not answer.
        :raises OSError: the server does not answer.
        """
        failures = 0
        while True:
            before = self._size()
            try:
                self._fetch(before)
                break
            except urllib.error.HTTPError as error:
                if error.code == 416 and before:  # The file is complete, or has changed; the hash decides.
                    break
                if error.code not in PASSING:
                    raise InputError(
                        f"{self._url} is refused: {error.code} {error.reason}.", "Check the address in a browser."
                    ) from error
                failures = self._failed(failures, before, error)
            except (OSError, http.client.HTTPException) as error:  # Network errors; volume errors have another type.
                failures = self._failed(failures, before, error)
        found = self._hash()
        if found != self._sha256:
            self.path.unlink()
            raise InputError(
                f"{self._url} has the sha256 {found}, not {self._sha256}.",
                "Compare it with the publisher's hash. The downloaded file is deleted.",
            )
        return self.path

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _failed(self, failures: int, before: int, error: Exception) -> int:
        """Wait for the next attempt; progress resets the count of failures.

        :raises OSError: too many attempts without a byte.
        """
        failures = 1 if self._size() > before else failures + 1
        reason = getattr(error, "reason", error)
        if failures >= ATTEMPTS:
            raise OSError(f"{self._url} does not answer: {reason}") from error
        self._log.emit("retry", url=self._url, why=str(reason), bytes=self._size())
        self._sleep(2.0 ** (failures - 1))
        return failures

    def _fetch(self, have: int) -> None:
        """Append the server's answer from byte `have` on; the whole file if the server does not support ranges."""
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - http and https, checked in the constructor
        with self._opener.open(request, timeout=SILENCE_SECONDS) as answer:
            # A chunked body marks its own end (RFC 9112, section 6.3).
            left = None if answer.chunked else self._length(answer.headers.get("Content-Length"))
            self._require_room(left or 0)
            if answer.status != 206:
                have = 0
                self._write(b"", "wb")
            self._copy(answer, have, left)

    def _length(self, given: str | None) -> int | None:
        """Return the length of a body in bytes; None if the server does not send it."""
        if given is not None and not LENGTH.fullmatch(given.strip()):
            raise InputError(
                f"{self._url} has the Content-Length {given[:40]!a}, which is not a file size.",
                "Set the address of another server.",
            )
        return int(given) if given is not None else None

    def _write(self, block: bytes, mode: str = "ab") -> None:
        """Write a block. Opening the file for each of the few blocks makes every volume error occur here."""
        try:
            with self.path.open(mode) as stream:
                stream.write(block)
        except OSError as error:
            raise unwritable(self._work, error) from error

    def _copy(self, answer: Any, done: int, left: int | None) -> None:
        total = done + left if left is not None else None
        said = time.monotonic()
        while block := self._read(answer):
            self._require_room(len(block), endless=total is None)
            self._write(block)
            done += len(block)
            if time.monotonic() - said >= REPORT_SECONDS:
                said = time.monotonic()
                self._log.emit("download", bytes=done, bytes_total=total)
        if total is not None and done < total:
            raise ConnectionError(f"the connection ended after {done} of {total} bytes")

    @staticmethod
    def _read(answer: Any) -> bytes:
        """Return about one block at most; empty at the end of the body."""
        if not answer.chunked:
            return bytes(answer.read(BLOCK))
        # For a chunk of size -1, `read` loads the whole stream into memory, `read1` one buffer.
        block = b""
        while len(block) < BLOCK and (part := answer.read1(BLOCK - len(block))):
            block += part
        return block

    def _require_room(self, more: int, *, endless: bool = False) -> None:
        """Check that the volume has room.

        :param more: bytes to write.
        :param endless: the server does not send the length, so the downloaded part is deleted.
        """
        usage = shutil.disk_usage(self._work)
        reserve = min(RESERVE, usage.total // 20)
        room = max(0, usage.free - reserve)
        if more > room:
            if endless:
                self.path.unlink(missing_ok=True)
            raise InputError(
                f"{self._url} needs {more} bytes more, and {self._work} has {room} beyond its reserve of {reserve}.",
                "Make room on its volume, or import from a server that sends the length."
                if endless
                else "Make room on its volume.",
            )

    def _hash(self) -> str:
        if not self.path.exists():
            self.path.touch()
        with self.path.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            return hashlib.file_digest(stream, "sha256").hexdigest()
