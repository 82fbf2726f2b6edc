"""Probe a Service from this node, and read the expiry of a TLS certificate; standard library only.

The probe covers TCP, TLS and one HTTP request, with a timeout. The second part checks the certificate of a TLS server
and returns its expiry.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from dataclasses import dataclass
from datetime import datetime, timezone

ANSWERS = frozenset({200, 401, 403})
"""Status codes that prove that the API server was reached; a site may forbid anonymous requests."""


class ServiceError(Exception):
    """The Service did not answer; the message names the failed step."""


@dataclass(frozen=True)
class Reply:
    """The response to a request.

    :param status: HTTP status code.
    :param verified: true if the certificate was checked against a CA.
    :param connect_seconds: seconds until the TCP connection was established.
    :param seconds: seconds until the status line was received.
    """

    status: int
    verified: bool
    connect_seconds: float
    seconds: float


def tls_context(ca_path: str) -> tuple[ssl.SSLContext, bool]:
    """Return a client context and whether it verifies certificates, which it does if the file `ca_path` exists."""
    if ca_path and os.path.isfile(ca_path):
        context = ssl.create_default_context(cafile=ca_path)
        # Python 3.13 enables strict RFC 5280 checks; the certificates of a site's own CA may lack those extensions.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context, True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context, False


def certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Find the certificate verification error that libraries have wrapped in another error; None if there is none."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        wrapped = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = wrapped or error.__cause__ or error.__context__
    return error


def is_final(refusal: ssl.SSLCertVerificationError) -> bool:
    """Return whether a retry is pointless. A certificate that is not valid yet only waits for the host's clock."""
    not_yet_valid = 9  # X509_V_ERR_CERT_NOT_YET_VALID of OpenSSL
    return refusal.verify_code != not_yet_valid


def request(address: str, port: int, *, name: str, path: str, ca_path: str = "", timeout: float = 5.0) -> Reply:
    """GET `path` over TLS and return the status.

    :param name: name that the certificate must contain (also sent as SNI and Host).
    :param ca_path: CA file in PEM; if it is missing, the certificate is not verified.
    :param timeout: limit in seconds for connecting, the handshake and the answer together.
    :raises ServiceError: a step failed or timed out.
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
    """Read the first line of the answer: at most 4 KiB, and never past the deadline."""
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


def certificate_end(address: str, port: int, *, name: str, ca_path: str, timeout: float) -> datetime:
    """Return the expiry of a server's certificate, which must be valid for the name now. Only the handshake is done.

    :param address: address that the server listens on.
    :param name: DNS name or address that the certificate must contain.
    :param ca_path: file of the CA that must have issued it.
    :param timeout: seconds for connection and handshake together.
    :raises ServiceError: no answer, an invalid certificate, or no CA file.
    """
    context, verifies = tls_context(ca_path)
    if not verifies:
        raise ServiceError(f"the CA file {ca_path} does not exist")
    try:
        with (
            socket.create_connection((address, port), timeout=timeout) as raw,
            context.wrap_socket(raw, server_hostname=name) as tls,
        ):
            found = tls.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        raise ServiceError(f"certificate refused: {error.verify_message}") from error
    except OSError as error:
        raise ServiceError(f"no TLS from {address}:{port}: {error}") from error
    # Hosts may have Python 3.10, which lacks datetime.UTC.
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), timezone.utc)  # noqa: UP017
