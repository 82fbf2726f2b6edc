"""Check dates, names and issuer of a certificate from its file, without a connection to its server."""

from __future__ import annotations

import ipaddress
from datetime import datetime


def trouble_of(pem: bytes, authority: bytes, name: str, now: datetime) -> tuple[datetime | None, str]:
    """Return when a certificate expires, and its fault as a clause; empty if it has none.

    :param pem: the certificate, optionally with its chain.
    :param authority: PEM of the CA that must have issued it; empty skips this check.
    :param name: DNS name or address that it must cover.
    """
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        found, *_ = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return None, "its certificate cannot be read"
    ends = found.not_valid_after_utc
    if now > ends:
        return ends, f"its certificate expired on {ends:%Y-%m-%d}"
    if now < found.not_valid_before_utc:
        return ends, f"its certificate is not valid before {found.not_valid_before_utc:%Y-%m-%d}"
    if not covers(names_of(found), name):
        return ends, f"its certificate is not for {name}"
    if authority:
        try:
            found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        except (InvalidSignature, ValueError, TypeError):
            return ends, "its certificate is not issued by its CA"
    return ends, ""


def names_of(certificate: object) -> list[str]:
    """Return the DNS names and addresses of a `cryptography.x509.Certificate`."""
    from cryptography import x509

    assert isinstance(certificate, x509.Certificate)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def covers(names: list[str], name: str) -> bool:
    """Return whether one of a certificate's names matches; `*.` matches one label (RFC 6125, 6.4.3)."""
    try:
        return str(ipaddress.ip_address(name)) in names
    except ValueError:
        pass
    wanted = name.lower().rstrip(".")
    wild = "*." + wanted.partition(".")[2]
    return any(each.lower() in (wanted, wild) for each in names)
