"""Downloads: over TLS, bounded in time and size, resumed after an interruption, believed only by their hash.

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
from ..store import CHUNK, sha256

if TYPE_CHECKING:
    import urllib3

SILENCE_TIMEOUT = 30
"""Seconds that a server may be silent."""
DOWNLOAD_TIMEOUT = 1800
"""Seconds for one file."""
PROBE_TIMEOUT = 3
"""Seconds in which an origin has to answer to be taken."""
ATTEMPTS = 3
"""Connections for one file; each goes on where the one before it broke off."""
REPEATS = 4
"""Requests repeated because a server is overloaded or out of order, after 0, 2, 4 and 8 s or what it asks for."""
PAUSE_LIMIT = 60
"""Seconds that a server may ask for (`Retry-After`)."""
REPEATED = (429, 500, 502, 503, 504)
INDEX_LIMIT = 64 << 20
"""Bytes of an index or manifest; Docker's largest index of packages has a few MiB."""
FILE_LIMIT = 4 << 30
"""Bytes of a file whose size no signed index says: no server fills a disk without end."""
ABSENT = (404, 410)
PIN_ANEW = (
    "write a version that it serves, and its hash, into bundle.lock.yml (docs/adr/0002-upstream-pins.md), "
    "or set bundle_artifact_source to source where the artefact has a recipe."
)
"""What to do about a pin whose file is gone."""
ALTERED = "Do not use it: the origin, the way to it or the pin has been altered. Find out which, then pin again."
"""What to do about bytes that are not those that were pinned."""


class HttpError(TrainyardError):
    """No answer, or one other than 2xx.

    :param status: of the answer, or 0 when there was none.
    """

    def __init__(self, url: str, why: str, status: int = 0) -> None:
        absent = f"The vendor no longer serves it: {PIN_ANEW}"
        unreached = "See whether this machine reaches that address, or set bundle_artifact_source to source."
        super().__init__(f"{url} cannot be fetched: {why}.", remedy=absent if status in ABSENT else unreached)
        self.status = status


class TooLargeError(HttpError):
    """A file with more bytes than its index says, or than any of its kind has."""

    def __init__(self, url: str, limit: int) -> None:
        super().__init__(url, f"it has more than {limit} bytes")
        self.remedy = ALTERED


def read(url: str, limit: int = INDEX_LIMIT) -> bytes:
    """The whole of a small file.

    :param limit: bytes.
    :raises HttpError: no answer, another status, or more bytes than the limit (TooLargeError).
    """
    content = bytearray()
    with _request(url) as answer:
        for chunk in _chunks(url, answer, _deadline(), limit, limit):
            content += chunk
    return bytes(content)


def answers(url: str) -> bool:
    """Whether an origin answers within `PROBE_TIMEOUT`; asking for a login (401) is an answer."""
    try:
        with _request(url, method="HEAD", timeout=PROBE_TIMEOUT, repeats=0):
            return True
    except HttpError as error:
        return error.status == 401


def download(url: str, target: Path, expected: str, *, partial: Path, limit: int = FILE_LIMIT) -> None:
    """Download a file whose hash is known; it appears whole or not at all.

    :param expected: SHA-256 as hexadecimal digits.
    :param partial: where the unfinished file lies, on the target's file system; a later call goes on from it.
    :param limit: bytes of the whole file, at most.
    :raises TrainyardError: another hash than expected, more bytes than the limit, or no whole file within `ATTEMPTS`
        connections.
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
    """SHA-256 of what a URL serves at this moment; nothing of it is kept."""
    digest = hashlib.sha256()
    with _request(url) as answer:
        for chunk in _chunks(url, answer, _deadline(), FILE_LIMIT, FILE_LIMIT):
            digest.update(chunk)
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


@contextmanager
def _request(
    url: str, *, method: str = "GET", start: int = 0, timeout: float = SILENCE_TIMEOUT, repeats: int = REPEATS
) -> Iterator[urllib3.BaseHTTPResponse]:
    """The answer to one request, whose body is read in the block.

    :param start: the first byte that is wanted.
    :param timeout: seconds of silence.
    :raises HttpError: no answer, one other than 2xx, or a connection that broke in the block.
    """
    # Not above: a run that fetches nothing need not load it.
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
    """What arrives of an answer, `left` of a file's `limit` at most; one that says that it has more is not read."""
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
    """Append what is still missing of a file.

    :raises HttpError: the connection broke or the time is over; what arrived stays.
    :raises TooLargeError: there is more than the limit.
    """
    have = partial.stat().st_size if partial.exists() else 0
    with _request(url, start=have) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        left = limit - have if resumed else limit
        with partial.open("ab" if resumed else "wb") as stream:
            for chunk in _chunks(url, answer, deadline, left, limit):
                stream.write(chunk)
