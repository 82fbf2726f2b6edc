"""Does a Service answer from this node: TCP, TLS and one HTTP request, bounded in time, standard library only."""

from __future__ import annotations

import os
import socket
import ssl
import time
from dataclasses import dataclass

ANSWERS = frozenset({200, 401, 403})
"""Status codes that prove the API server was reached: a site may forbid anonymous requests."""


class ServiceError(Exception):
    """The Service did not answer; the message says at which step."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    :param status: HTTP status code.
    :param verified: true if the certificate was checked against a CA.
    :param connect_seconds: until the TCP connection stood.
    :param seconds: until the status line was there.
    """

    status: int
    verified: bool
    connect_seconds: float
    seconds: float


def tls_context(ca_path: str) -> tuple[ssl.SSLContext, bool]:
    """A client context that verifies against `ca_path` where that file exists, and whether it verifies."""
    if ca_path and os.path.isfile(ca_path):
        context = ssl.create_default_context(cafile=ca_path)
        # Python 3.13 turned strict RFC 5280 checks on; a site's own CA may be older than those extensions.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context, True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context, False


def certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The refusal of a certificate that an error tells of, however deep its libraries have wrapped it."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        wrapped = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = wrapped or error.__cause__ or error.__context__
    return error


def is_final(refusal: ssl.SSLCertVerificationError) -> bool:
    """Whether a certificate was refused for good; one that is not valid yet only waits for the host's clock."""
    not_yet_valid = 9  # X509_V_ERR_CERT_NOT_YET_VALID of OpenSSL
    return refusal.verify_code != not_yet_valid


def request(address: str, port: int, *, name: str, path: str, ca_path: str = "", timeout: float = 5.0) -> Reply:
    """GET `path` over TLS and return the status.

    :param name: name that the certificate has to carry (also sent as SNI and Host).
    :param ca_path: CA file in PEM; a missing file means that the certificate is not verified.
    :param timeout: limit in seconds for connecting, the handshake and the answer together.
    :raises ServiceError: any step failed or the time was over.
    """
    started = time.monotonic()
    deadline = started + timeout
    step = "connecting"
    try:
        context, verified = tls_context(ca_path)
        with socket.create_connection((address, port), timeout=timeout) as raw:
            connected = time.monotonic() - started
            step = "the TLS handshake"
            raw.settimeout(_left(deadline))
            with context.wrap_socket(raw, server_hostname=name) as tls:
                step = "the request"
                tls.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode("ascii"))
                status = _status(_status_line(tls, deadline))
    except ssl.SSLCertVerificationError as error:
        raise ServiceError(f"{address} port {port}: certificate refused: {error.verify_message}") from error
    except TimeoutError:
        raise ServiceError(f"{address} port {port}: {step} was not done within {timeout:g} s") from None
    except OSError as error:
        raise ServiceError(f"{address} port {port}: {step} failed: {error.strerror or error}") from error
    return Reply(status, verified, connected, time.monotonic() - started)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _status_line(tls: ssl.SSLSocket, deadline: float) -> bytes:
    """The first line of the answer; at most 4 KiB are read, and never past the deadline."""
    received = b""
    while b"\n" not in received and len(received) < 4096:
        tls.settimeout(_left(deadline))
        piece = tls.recv(1024)
        if not piece:
            break
        received += piece
    return received.split(b"\n", 1)[0]


def _status(line: bytes) -> int:
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ServiceError(f"the answer is not HTTP: {line[:60]!r}")
    return int(words[1])
