"""Certificates for servers on this machine."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID


def self_signed(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None,
    days: tuple[int, int] = (-1, 1),
    name: str = "localhost",
) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that is its own authority, and its key, both PEM.

    :param key: the key to certify; None makes one.
    :param days: when it begins and ends to be valid, from now.
    :param name: DNS name that it is for, besides the address.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(name)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), secret.decode()


def pair_file(path: Path, certificate: str = "", key: str = "") -> Path:
    """A file with this certificate and its key, or with new ones."""
    path.write_text(certificate + key or "".join(self_signed()))
    return path


@contextmanager
def tls_server(handler: type[http.server.BaseHTTPRequestHandler], pair: Path, clients: str = "") -> Iterator[str]:
    """URL of a server on this machine, with the certificate and key of a file.

    :param clients: authority, PEM, of the certificate that callers have to have; empty admits everybody.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
