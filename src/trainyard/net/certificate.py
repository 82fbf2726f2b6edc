"""The certificate of a TLS server: is it valid, and when does it end; standard library only."""

from __future__ import annotations

import socket
import ssl
from datetime import datetime, timezone

from .https import ServiceError, tls_context


def certificate_end(address: str, port: int, *, name: str, ca_path: str, timeout: float) -> datetime:
    """When the certificate of a server ends, which has to be valid for its name now. Only the handshake is done.

    :param address: where the server listens.
    :param name: DNS name or address that the certificate has to be for.
    :param ca_path: authority that it has to come from.
    :param timeout: seconds for connection and handshake together.
    :raises ServiceError: no answer, or a certificate that is not valid; or there is no authority to judge it by.
    """
    context, verifies = tls_context(ca_path)
    if not verifies:
        raise ServiceError(f"there is no {ca_path} to verify its certificate with")
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
    # Python 3.10, which hosts may have, knows no datetime.UTC.
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), timezone.utc)  # noqa: UP017
