"""Downloads over TLS: bounded in time and size, resumed after an interruption, and verified by hash.

Proxies and certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`).
"""

from __future__ import annotations

import hashlib
import os
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import TrainyardError
from ...core.untrusted import whole
from ..artefact_store import CHUNK, sha256

if TYPE_CHECKING:
    import urllib3

SILENCE_TIMEOUT = 30
"""Seconds that a server may be silent."""
DOWNLOAD_TIMEOUT = 1800
"""Seconds for one file."""
PROBE_TIMEOUT = 3
"""Seconds within which an origin must answer to count as reachable."""
ATTEMPTS = 3
"""Connections for one file; each resumes where the previous one broke off."""
REPEATS = 4
"""Retries if a server is overloaded or failing, after 0, 2, 4 and 8 s, or after the delay that it requests."""
PAUSE_LIMIT = 60
"""Longest delay in seconds that a server may request (`Retry-After`)."""
REPEATED = (429, 500, 502, 503, 504)
INDEX_LIMIT = 64 << 20
"""Largest index or manifest in bytes; Docker's largest package index has a few MiB."""
FILE_LIMIT = 4 << 30
"""Largest file in bytes without a size in a signed index, so that no server can fill the disk."""
ABSENT = (404, 410)
PIN_ANEW = (
    "write a version that it serves, and its hash, into bundle.lock.yml (docs/adr/0002-upstream-pins.md), "
    "or set bundle_artifact_source to source if the artefact has a recipe."
)
"""Remedy for a pin whose file is gone."""
ALTERED = "Do not use it: the origin, the transfer or the pin has been altered. Find out which, then pin again."
"""Remedy for bytes that do not match the pin."""


class HttpError(TrainyardError):
    """No answer, or a status other than 2xx.

    :param status: HTTP status, or 0 if there was no answer.
    """

    def __init__(self, url: str, why: str, status: int = 0) -> None:
        absent = f"The vendor no longer serves it: {PIN_ANEW}"
        unreached = "Check that this machine reaches that address, or set bundle_artifact_source to source."
        super().__init__(f"{url} cannot be fetched: {why}.", remedy=absent if status in ABSENT else unreached)
        self.status = status


class TooLargeError(HttpError):
    """A file that exceeds the size in its index, or the limit for its kind."""

    def __init__(self, url: str, limit: int) -> None:
        super().__init__(url, f"it has more than {limit} bytes")
        self.remedy = ALTERED


def read(url: str, limit: int = INDEX_LIMIT) -> bytes:
    """Return the content of a small file.

    :param limit: bytes.
    :raises HttpError: no answer, another status, or more bytes than the limit (TooLargeError).
    """
    content = bytearray()
    with _request(url) as answer:
        for chunk in _chunks(url, answer, _deadline(), limit, limit):
            content += chunk
    return bytes(content)


def answers(url: str) -> bool:
    """Return whether an origin answers within `PROBE_TIMEOUT`; status 401 counts as an answer."""
    try:
        with _request(url, method="HEAD", timeout=PROBE_TIMEOUT, repeats=0):
            return True
    except HttpError as error:
        return error.status == 401


def download(url: str, target: Path, expected: str, *, partial: Path, limit: int = FILE_LIMIT) -> None:
    """Download a file with a known hash; it appears atomically.

    :param expected: SHA-256 as hexadecimal digits.
    :param partial: path of the unfinished file, on the target's file system; a later call resumes it.
    :param limit: maximum size in bytes.
    :raises TrainyardError: the hash differs, the file exceeds the limit, or is incomplete after `ATTEMPTS` connections.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    deadline = _deadline()
    failure: TrainyardError | None = None
    for attempt in range(ATTEMPTS):
        time.sleep(attempt)
        resumed = partial.exists()
        try:
            _receive(url, partial, deadline, limit)
        except TooLargeError:
            partial.unlink(missing_ok=True)
            raise
        except HttpError as error:
            if error.status == 416:
                partial.unlink(missing_ok=True)
            elif error.status:
                raise
            failure = error
            continue
        found = sha256(partial)
        if found == expected:
            os.replace(partial, target)
            return
        partial.unlink()
        failure = mismatch(url, expected, found)
        if not resumed:
            break
    assert failure
    raise failure


def sha256_of(url: str) -> str:
    """Return the SHA-256 of a URL's current content, without storing it."""
    digest = hashlib.sha256()
    with _request(url) as answer:
        for chunk in _chunks(url, answer, _deadline(), FILE_LIMIT, FILE_LIMIT):
            digest.update(chunk)
    return digest.hexdigest()


def mismatch(what: str, expected: str, found: str, algorithm: str = "SHA-256") -> TrainyardError:
    """Return the error for bytes that do not match their pin."""
    return TrainyardError(
        f"{what} has the {algorithm} {found}, expected was {expected}.",
        remedy=ALTERED,
        url=what,
        expected=expected,
        found=found,
    )


@contextmanager
def _request(
    url: str, *, method: str = "GET", start: int = 0, timeout: float = SILENCE_TIMEOUT, repeats: int = REPEATS
) -> Iterator[urllib3.BaseHTTPResponse]:
    """Send one request and provide the response, whose body is read in the block.

    :param start: offset of the first requested byte.
    :param timeout: seconds of silence.
    :raises HttpError: no answer, a status other than 2xx, or a connection that broke in the block.
    """
    # Imported here, because a run that fetches nothing does not need it.
    import urllib3

    retries = urllib3.Retry(
        total=None,
        connect=min(1, repeats),
        read=min(1, repeats),
        other=0,
        redirect=5,
        status=repeats,
        status_forcelist=REPEATED,
        backoff_factor=1,
        retry_after_max=PAUSE_LIMIT,
        raise_on_status=False,
    )
    address = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(address.scheme, "")
    make: Callable[..., urllib3.PoolManager] = urllib3.PoolManager
    if proxy and not urllib.request.proxy_bypass(address.hostname or ""):
        login = urllib3.make_headers(proxy_basic_auth=urllib3.util.parse_url(proxy).auth)
        make = partial(urllib3.ProxyManager, proxy, proxy_headers=login)
    pool = make(ssl_context=ssl.create_default_context(), timeout=timeout, retries=retries)
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        with pool, pool.request(method, url, headers=headers, preload_content=False, decode_content=False) as answer:
            if not 200 <= answer.status < 300:
                raise HttpError(url, f"the server answered {answer.status} {answer.reason}", answer.status)
            reached = urllib.parse.urljoin(url, answer.geturl() or url)
            if address.scheme == "https" and not reached.startswith("https:"):
                raise HttpError(url, f"it leads to {reached}, which is not https")
            yield answer
    except urllib3.exceptions.HTTPError as error:
        raise HttpError(url, str(getattr(error, "reason", None) or error) or type(error).__name__) from error


def _deadline() -> float:
    return time.monotonic() + DOWNLOAD_TIMEOUT


def _chunks(url: str, answer: urllib3.BaseHTTPResponse, deadline: float, left: int, limit: int) -> Iterator[bytes]:
    """Yield the received bytes, at most `left` of a file's `limit`. A larger stated size is refused without reading."""
    if left < (whole(answer.headers.get("Content-Length"), 0) or 0):
        raise TooLargeError(url, limit)
    # Not `stream`: it waits for a whole chunk, which a slow server may never fill in time.
    while chunk := answer.read1(CHUNK):
        left -= len(chunk)
        if left < 0:
            raise TooLargeError(url, limit)
        yield chunk
        if time.monotonic() > deadline:
            raise HttpError(url, f"it did not arrive within {DOWNLOAD_TIMEOUT} s")


def _receive(url: str, partial: Path, deadline: float, limit: int) -> None:
    """Download the missing rest of a file.

    :raises HttpError: the connection broke or timed out; the received bytes are kept.
    :raises TooLargeError: the file exceeds the limit.
    """
    have = partial.stat().st_size if partial.exists() else 0
    with _request(url, start=have) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        left = limit - have if resumed else limit
        with partial.open("ab" if resumed else "wb") as stream:
            for chunk in _chunks(url, answer, deadline, left, limit):
                stream.write(chunk)
