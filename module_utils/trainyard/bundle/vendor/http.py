"""Downloads: over TLS, bounded in time and size, resumed after an interruption, believed only by their hash.

Proxies and certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`).
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

from ...core.errors import TrainyardError
from ..store import CHUNK, sha256

SILENCE_TIMEOUT = 30
"""Seconds that a server may be silent."""
DOWNLOAD_TIMEOUT = 1800
"""Seconds for one file."""
PROBE_TIMEOUT = 3
"""Seconds in which an origin has to answer to be taken."""
ATTEMPTS = 3
"""Connections for one file; each goes on where the one before it broke off."""
INDEX_LIMIT = 64 << 20
"""Bytes of an index or manifest; Docker's largest index of packages has a few MiB."""

ALTERED = "Do not use it: the origin, the way to it or the pin has been altered. Find out which, then pin again."
"""What to do about bytes that are not those that were pinned."""


class HttpError(TrainyardError):
    """An answer other than 2xx.

    :param status: of the answer, or 0 when there was none.
    :param headers: of the answer.
    """

    def __init__(self, url: str, why: str, status: int = 0, headers: Message | None = None) -> None:
        super().__init__(
            f"{url} cannot be fetched: {why}.",
            remedy="See whether this machine reaches that address, or set bundle_artifact_source to source.",
        )
        self.status = status
        self.headers = headers or Message()


def request(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    authorization: str = "",
    method: str = "GET",
    timeout: float = SILENCE_TIMEOUT,
) -> http.client.HTTPResponse:
    """Send one request and return the answer, whose body is still to be read.

    :param authorization: value of that header; never sent to the address that a redirection leads to.
    :raises HttpError: no answer, or one other than 2xx.
    """
    asked = urllib.request.Request(url, headers=dict(headers or {}), method=method)
    if authorization:
        asked.add_unredirected_header("Authorization", authorization)
    try:
        return urllib.request.urlopen(asked, timeout=timeout, context=ssl.create_default_context())
    except urllib.error.HTTPError as error:
        error.close()
        raise HttpError(url, f"the server answered {error.code} {error.reason}", error.code, error.headers) from error
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(url, str(getattr(error, "reason", error)) or type(error).__name__) from error


def read(
    url: str, *, headers: Mapping[str, str] | None = None, authorization: str = "", limit: int = INDEX_LIMIT
) -> bytes:
    """The whole of a small file.

    :param limit: bytes.
    :raises HttpError: no answer, another status, or more bytes than the limit.
    """
    try:
        with request(url, headers=headers, authorization=authorization) as answer:
            content = answer.read(limit + 1)
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(url, str(error) or type(error).__name__) from error
    if len(content) > limit:
        raise HttpError(url, f"it has more than {limit} bytes")
    return content


def answers(url: str) -> bool:
    """Whether an origin answers within `PROBE_TIMEOUT`; asking for a login (401) is an answer."""
    try:
        request(url, method="HEAD", timeout=PROBE_TIMEOUT).close()
    except HttpError as error:
        return error.status == 401
    return True


def download(url: str, target: Path, expected: str, *, partial: Path, authorization: str = "") -> None:
    """Download a file whose hash is known; it appears whole or not at all.

    :param expected: SHA-256 as hexadecimal digits.
    :param partial: where the unfinished file lies, on the target's file system; a later call goes on from it.
    :raises TrainyardError: another hash than expected, or no whole file within `ATTEMPTS` connections.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + DOWNLOAD_TIMEOUT
    failure: HttpError | None = None
    for _ in range(ATTEMPTS):
        resumed = partial.exists()
        try:
            _receive(url, partial, deadline, authorization)
        except HttpError as error:
            if error.status == 416:
                partial.unlink(missing_ok=True)
            elif 400 <= error.status < 500:
                raise
            failure = error
            continue
        found = sha256(partial)
        if found == expected:
            os.replace(partial, target)
            return
        partial.unlink()
        if not resumed:
            raise mismatch(url, expected, found)
    raise failure or mismatch(url, expected, found)


def sha256_bytes(content: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(url: str) -> str:
    """SHA-256 of what a URL serves at this moment; nothing of it is kept."""
    digest = hashlib.sha256()
    with request(url) as answer:
        announced, received = answer.headers.get("Content-Length"), 0
        while chunk := answer.read1(CHUNK):
            received += len(chunk)
            digest.update(chunk)
    if announced is not None and received < int(announced):
        raise HttpError(url, f"the connection broke after {received} of {announced} bytes")
    return digest.hexdigest()


def mismatch(what: str, expected: str, found: str, algorithm: str = "SHA-256") -> TrainyardError:
    """The refusal of bytes that are not those that were pinned."""
    return TrainyardError(
        f"{what} has the {algorithm} {found}, expected was {expected}.",
        remedy=ALTERED,
        url=what,
        expected=expected,
        found=found,
    )


def _receive(url: str, partial: Path, deadline: float, authorization: str) -> None:
    """Append what is still missing of a file.

    :raises HttpError: the connection broke or the time is over; what arrived stays.
    """
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with request(url, headers=headers, authorization=authorization) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        announced = answer.headers.get("Content-Length")
        received = 0
        with partial.open("ab" if resumed else "wb") as stream:
            while True:
                try:
                    # Not `read`: it waits for a whole chunk, which a slow server may never fill in time.
                    chunk = answer.read1(CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise HttpError(url, str(error) or type(error).__name__) from error
                if not chunk:
                    break
                received += stream.write(chunk)
                if time.monotonic() > deadline:
                    raise HttpError(url, f"it did not arrive within {DOWNLOAD_TIMEOUT} s")
    if announced is not None and received < int(announced):
        raise HttpError(url, f"the connection broke after {received} of {announced} bytes")
