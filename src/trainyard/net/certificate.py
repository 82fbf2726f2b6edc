"""Check the certificate of a TLS server and read its expiry; standard library only."""

from __future__ import annotations

import socket
import ssl
from datetime import datetime, timezone

from .https import ServiceError, tls_context


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
