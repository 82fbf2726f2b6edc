"""A download that goes on after a break and is believed only by its hash."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_import.way import opener
from lib.errors import InputError, unwritable
from lib.metrics import MetricsLog

ATTEMPTS = 6
"""In a row without a byte, 1, 2, 4, ... s apart; a minute in all."""
SILENCE_SECONDS = 30.0
BLOCK = 1 << 20
REPORT_SECONDS = 5.0
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed (RFC 9110; 425 is RFC 8470, 429 RFC 6585)."""
RESERVE = 1 << 30
"""Bytes of the volume that stay free for its other users; a twentieth of a volume below 20 GiB."""
LENGTH = re.compile(r"[0-9]{1,18}")
"""Bytes of a body (RFC 9110, section 8.6), below the largest size of a file."""


class Download:
    """One file, kept as `download` in a folder until it is whole.

    :param sha256: of the whole file, 64 lower-case hexadecimal digits.
    :param work: folder that is kept between calls.
    :raises InputError: the URL or the hash is none.
    """

    def __init__(
        self, url: str, sha256: str, work: Path, log: MetricsLog, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise InputError(f"sha256 {sha256!r} is not 64 hexadecimal digits.", "Give that of the file.")
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"The URL {url} is neither http nor https.", "Give the address of a file.")
        self._opener = opener()
        self._url, self._sha256, self._work, self._log, self._sleep = url, sha256, work, log, sleep
        self.path = work / "download"

    def finish(self) -> Path:
        """Fetch what is missing and return the file.

        :raises InputError: the server refuses or gives a length that is none, the hash is another one, or there is no
            room.
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
                if error.code == 416 and before:  # Nothing is missing, or it is another file now: the hash will tell.
                    break
                if error.code not in PASSING:
                    raise InputError(
                        f"{self._url} is refused: {error.code} {error.reason}.", "Look at the address in a browser."
                    ) from error
                failures = self._failed(failures, before, error)
            except (OSError, http.client.HTTPException) as error:  # The network's: the volume's are of another kind.
                failures = self._failed(failures, before, error)
        found = self._hash()
        if found != self._sha256:
            self.path.unlink()
            raise InputError(
                f"{self._url} has the sha256 {found}, not {self._sha256}.",
                "Compare it with what the publisher says; what was fetched is deleted.",
            )
        return self.path

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _failed(self, failures: int, before: int, error: Exception) -> int:
        """Wait for the next attempt; progress begins the count anew.

        :raises OSError: too many without a byte.
        """
        failures = 1 if self._size() > before else failures + 1
        reason = getattr(error, "reason", error)
        if failures >= ATTEMPTS:
            raise OSError(f"{self._url} does not answer: {reason}") from error
        self._log.emit("retry", url=self._url, why=str(reason), bytes=self._size())
        self._sleep(2.0 ** (failures - 1))
        return failures

    def _fetch(self, have: int) -> None:
        """Append what the server gives from byte `have` on; all of it where the server knows no ranges."""
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - http and https, looked at in the constructor
        with self._opener.open(request, timeout=SILENCE_SECONDS) as answer:
            # Chunks say their own end (RFC 9112, section 6.3).
            left = None if answer.chunked else self._length(answer.headers.get("Content-Length"))
            self._require_room(left or 0)
            if answer.status != 206:
                have = 0
                self._write(b"", "wb")
            self._copy(answer, have, left)

    def _length(self, given: str | None) -> int | None:
        """Bytes of a body; None where the server does not say."""
        if given is not None and not LENGTH.fullmatch(given.strip()):
            raise InputError(
                f"{self._url} has the Content-Length {given[:40]!a}, which is no size of a file.",
                "Set the address of another server.",
            )
        return int(given) if given is not None else None

    def _write(self, block: bytes, mode: str = "ab") -> None:
        """Opened for each block, of which there are few, so that every error of the volume shows here."""
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
        """About a block at most; empty at the end of the body."""
        if not answer.chunked:
            return bytes(answer.read(BLOCK))
        # For a chunk of size -1, `read` takes all that comes into memory, and `read1` one buffer.
        block = b""
        while len(block) < BLOCK and (part := answer.read1(BLOCK - len(block))):
            block += part
        return block

    def _require_room(self, more: int, *, endless: bool = False) -> None:
        """
        :param more: bytes that are to be written.
        :param endless: the server does not say how many follow, so that what was fetched is deleted.
        """
        usage = shutil.disk_usage(self._work)
        reserve = min(RESERVE, usage.total // 20)
        room = max(0, usage.free - reserve)
        if more > room:
            if endless:
                self.path.unlink(missing_ok=True)
            raise InputError(
                f"{self._url} needs {more} bytes more, and {self._work} has {room} beyond its reserve of {reserve}.",
                "Make room on its volume, or import from a server that names the length."
                if endless
                else "Make room on its volume.",
            )

    def _hash(self) -> str:
        if not self.path.exists():
            self.path.touch()
        with self.path.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            return hashlib.file_digest(stream, "sha256").hexdigest()
